internal import Glibc

// Header fields are stored as received: one buffer of bytes and, for each field, the positions of its name
// and its value. A head of twenty fields thus costs three allocations instead of forty; a String is made only
// when a caller asks for one. Looking up a name compares bytes and allocates nothing.

/// The fields of a header or trailer section, in order, with repetitions; names are compared without regard
/// to ASCII case (RFC 9110 §5).
///
/// This type validates nothing: the reader has checked received fields, and the writer checks those to be
/// sent.
package struct HeaderFields: Sendable {
    /// The position of one field in `bytes`.
    struct Entry: Sendable {
        var nameStart: UInt32
        var nameCount: UInt32
        var valueStart: UInt32
        var valueCount: UInt32

        var name: Range<Int> { Int(nameStart)..<Int(nameStart) + Int(nameCount) }
        var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueCount) }
    }

    /// The data of the fields. In one object, because fields are passed on far more often than changed.
    ///
    /// `@unchecked Sendable`: it is changed in two places only: in an initialiser, before it is shared, and
    /// through `own`, which makes a copy first unless this value is its only holder.
    ///
    /// `@exclusivity(unchecked)`: for the same reason no access overlaps with a change. A small GET makes ten
    /// accesses; with their checks, and that of `LoadAnswers.cache`, bench-guard's http.request takes up to
    /// 4 % more instructions.
    private final class Storage: @unchecked Sendable {
        @exclusivity(unchecked) var bytes: [UInt8] = []
        @exclusivity(unchecked) var entries: [Entry] = []
        var marks: UInt64 = 0
        var isSerialized = true
        var isChecked = false

        init() {}

        init(copying other: Storage) {
            (bytes, entries, marks) = (other.bytes, other.entries, other.marks)
            (isSerialized, isChecked) = (other.isSerialized, other.isChecked)
        }
    }

    private var storage: Storage

    /// Shared by all values without fields. Never changed, since it has several holders.
    private static let empty = Storage()

    /// The storage for a change, copied if it is shared. Get it only once in a change: a variable that holds
    /// it is a second holder, so a second get would return a copy.
    private var own: Storage {
        mutating get {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(copying: storage) }
            return storage
        }
    }

    /// The bytes of names and values, and the bytes between them.
    var bytes: [UInt8] { storage.bytes }
    var entries: [Entry] { storage.entries }
    /// Whether `bytes` is exactly the text of the fields in a message: each name followed by a colon and a
    /// space, the value, CR and LF, in order. That is so as long as fields are only appended.
    var isSerialized: Bool { storage.isSerialized }
    /// A set of bits with the mark of every name that is present, which may include marks of absent names.
    /// Most names that are looked up are absent, and this shows it at once.
    private var marks: UInt64 { storage.marks }

    /// Whether the writer has checked the fields and found nothing that must not be sent.
    var isChecked: Bool { storage.isChecked }

    package init() { storage = Self.empty }

    /// An instance without fields, with room for `count` fields of usual length.
    package init(expecting count: Int) {
        storage = Storage()
        storage.entries.reserveCapacity(count)
        storage.bytes.reserveCapacity(32 * count)
    }

    package init(_ pairs: [(String, String)]) {
        storage = Storage()
        storage.entries.reserveCapacity(pairs.count)
        storage.bytes.reserveCapacity(pairs.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count })
        for (name, value) in pairs { append(name: name, value: value) }
    }

    /// The fields that the reader has found: `bytes` is the section as received; `marks` has the marks of all
    /// names.
    init(bytes: [UInt8], entries: [Entry], marks: UInt64) {
        storage = Storage()
        storage.bytes = bytes
        storage.entries = entries
        storage.marks = marks
        storage.isSerialized = false
    }

    /// The mark of a name, made of its number of bytes and its first byte.
    static func mark(_ count: Int, _ first: UInt8) -> UInt64 {
        1 &<< UInt64(truncatingIfNeeded: count &* 7 &+ Int(Grammar.lowercased(first)))
    }

    private static func mark(_ name: StaticString) -> UInt64 {
        name.utf8CodeUnitCount == 0 ? 1 : mark(name.utf8CodeUnitCount, name.utf8Start.pointee)
    }

    private static func mark(_ name: String) -> UInt64 {
        name.utf8.first.map { mark(name.utf8.count, $0) } ?? 1
    }

    /// The number of fields; each repetition counts.
    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }

    // MARK: Changing

    package mutating func append(name: String, value: String) {
        var (name, value) = (name, value)
        name.withUTF8 { name in value.withUTF8 { value in append(name: name, value: value) } }
    }

    package mutating func append(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        let own = own
        let nameStart = own.bytes.count
        own.isChecked = false
        own.marks |= name.first.map { Self.mark(name.count, $0) } ?? 1
        own.bytes.append(contentsOf: name)
        let nameEnd = own.bytes.count
        own.bytes.append(Grammar.colon)
        own.bytes.append(Grammar.space)
        own.bytes.append(contentsOf: value)
        own.entries.append(
            Entry(
                nameStart: UInt32(nameStart), nameCount: UInt32(nameEnd - nameStart),
                valueStart: UInt32(nameEnd + 2), valueCount: UInt32(own.bytes.count - nameEnd - 2)))
        own.bytes.append(Grammar.carriageReturn)
        own.bytes.append(Grammar.lineFeed)
    }

    /// Appends all of `other`.
    package mutating func append(_ other: HeaderFields) {
        let own = own
        let shift = UInt32(own.bytes.count)
        own.marks |= other.marks
        own.bytes.append(contentsOf: other.bytes)
        for var entry in other.entries {
            entry.nameStart += shift
            entry.valueStart += shift
            own.entries.append(entry)
        }
        own.isSerialized = own.isSerialized && other.isSerialized
        own.isChecked = false
    }

    /// Sets the value of the first field called `name` and removes its repetitions; appends the field if
    /// there is none. The field keeps its position and the spelling of its name.
    package mutating func set(name: String, value: String) {
        var value = value
        value.withUTF8 { set(name: name, value: $0) }
    }

    /// Does the same with a value in bytes. The bytes must not lie in these fields' own storage.
    package mutating func set(name: String, value: UnsafeBufferPointer<UInt8>) {
        guard mayHave(name), let first = entries.firstIndex(where: { isNamed($0, name) }) else {
            var name = name
            return name.withUTF8 { append(name: $0, value: value) }
        }
        let own = own
        own.isSerialized = false
        own.isChecked = false
        let start = own.bytes.count
        own.bytes.append(contentsOf: value)
        own.entries[first].valueStart = UInt32(start)
        own.entries[first].valueCount = UInt32(own.bytes.count - start)
        var index = 0
        own.entries.removeAll { entry in
            defer { index += 1 }
            return index > first && Grammar.equalIgnoringCase(own.bytes[entry.name], name.utf8)
        }
    }

    /// Removes every field called `name`. The bytes stay in the buffer, since heads are short-lived.
    package mutating func remove(_ name: String) {
        guard mayHave(name) else { return }
        let own = own
        own.isSerialized = false
        own.entries.removeAll { Grammar.equalIgnoringCase(own.bytes[$0.name], name.utf8) }
    }

    /// Lets the writer check the fields now, so that they need not be checked each time they are sent
    /// unchanged.
    package mutating func check() {
        // An error is reported when the fields are sent.
        do throws(HTTP1Error) {
            try HTTP1Writer.check(self)
            own.isChecked = true
        } catch {
            own.isChecked = false
        }
    }

    // MARK: Looking up

    /// The value of `name`; nil if there is no such field.
    ///
    /// If the field is repeated, the values are joined by ", ", which RFC 9110 §5.3 makes equivalent for
    /// every field defined as a list. For other fields (`Location`, `Set-Cookie`, `Date` and the rest of
    /// `isSingular`) the first value is returned.
    package subscript(name: String) -> String? {
        guard mayHave(name), let first = entries.firstIndex(where: { isNamed($0, name) }) else {
            return nil
        }
        var joined = value(entries[first])
        for entry in entries[(first + 1)...] where isNamed(entry, name) {
            if Self.isSingular(name) { break }
            joined += ", " + value(entry)
        }
        return joined
    }

    /// The value of the first field called `name`.
    package func first(_ name: String) -> String? {
        mayHave(name) ? entries.first { isNamed($0, name) }.map(value) : nil
    }

    /// The common value of all fields called `name`; nil if there is none, or if their values differ.
    ///
    /// - Parameter text: Turns a value into text; `reference(_:)` for a URI.
    package func agreed(
        _ name: StaticString, as text: (UnsafeBufferPointer<UInt8>) -> String = HeaderFields.text
    ) -> String? {
        var agreed: String?
        var areSame = true
        forEachValue(of: name) { bytes in
            let value = text(bytes)
            areSame = areSame && (agreed ?? value).utf8.elementsEqual(value.utf8)
            agreed = value
        }
        return areSame ? agreed : nil
    }

    /// The values of all fields called `name`, in order, not split at commas.
    package func values(for name: String) -> [String] {
        mayHave(name) ? entries.compactMap { isNamed($0, name) ? value($0) : nil } : []
    }

    package func contains(_ name: String) -> Bool {
        mayHave(name) && entries.contains { isNamed($0, name) }
    }

    /// The same for a constant name: the fastest way to look one up.
    package func has(_ name: StaticString) -> Bool {
        mayHave(name) && entries.contains { isNamed($0, name) }
    }

    private func mayHave(_ name: StaticString) -> Bool { marks & Self.mark(name) != 0 }

    private func mayHave(_ name: String) -> Bool { marks & Self.mark(name) != 0 }

    /// Hashes the number of fields called `name`, and their values, in order.
    package func hashValues(of name: StaticString, into hasher: inout Hasher) {
        var count = 0
        if mayHave(name) {
            bytes.withUnsafeBytes { bytes in
                for entry in entries where isNamed(entry, name) {
                    count += 1
                    hasher.combine(entry.valueCount)
                    hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: bytes[entry.value]))
                }
            }
        }
        hasher.combine(count)
    }

    /// Whether these fields are an unchanged copy of `other`, and therefore equal; no field is compared. If
    /// not, they may still be equal.
    package func areCopied(from other: HeaderFields) -> Bool { storage === other.storage }

    /// The approximate number of bytes of the fields.
    package var size: Int { bytes.count }

    /// Whether a field called `name`, read as a comma-separated list, has the element `token`, compared
    /// without regard to case: `Connection: Keep-Alive, Upgrade` contains `upgrade`.
    package func contains(_ name: StaticString, token: StaticString) -> Bool {
        guard mayHave(name) else { return false }
        return entries.contains { entry in
            guard Int(entry.valueCount) >= token.utf8CodeUnitCount, isNamed(entry, name) else { return false }
            return bytes.withUnsafeBufferPointer {
                Self.contains(token, in: UnsafeBufferPointer(rebasing: $0[entry.value]))
            }
        }
    }

    private static func contains(_ token: StaticString, in list: UnsafeBufferPointer<UInt8>) -> Bool {
        // Nearly always there is one element.
        guard list.contains(Grammar.comma) else {
            return Grammar.equalIgnoringCase(Grammar.trimmed(list), token.utf8Bytes)
        }
        var found = false
        Grammar.forEachElement(of: list) { element in
            found = found || Grammar.equalIgnoringCase(element, token.utf8Bytes)
        }
        return found
    }

    /// Calls `body` with each element of the comma-separated lists in the fields called `name`.
    func forEachElement<Failure: Error>(
        of name: StaticString,
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        try forEachValue(of: name) { (value) throws(Failure) in try Grammar.forEachElement(of: value, body) }
    }

    /// Calls `body` with the value of each field called `name`, in order.
    func forEachValue<Failure: Error>(
        of name: StaticString, _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        guard mayHave(name) else { return }
        try bytes.withUnsafeBufferPointer { (all) throws(Failure) in
            for entry in entries where Self.isNamed(entry, name, in: all) {
                try body(UnsafeBufferPointer(rebasing: all[entry.value]))
            }
        }
    }

    /// The bytes of the first value of `name`.
    package func firstBytes(of name: StaticString) -> [UInt8]? {
        var first: [UInt8]?
        forEachValue(of: name) { if first == nil { first = Array($0) } }
        return first
    }

    /// Calls `body` with the fields in order, as bytes; `text(_:)` turns a value into text.
    package func forEachField(
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Void
    ) {
        bytes.withUnsafeBufferPointer { bytes in
            for entry in entries {
                body(
                    UnsafeBufferPointer(rebasing: bytes[entry.name]),
                    UnsafeBufferPointer(rebasing: bytes[entry.value]))
            }
        }
    }

    // MARK: Inside

    // Lengths are compared first: few names of one head have the same length.

    private func isNamed(_ entry: Entry, _ name: String) -> Bool {
        Int(entry.nameCount) == name.utf8.count && Grammar.equalIgnoringCase(bytes[entry.name], name.utf8)
    }

    func isNamed(_ entry: Entry, _ name: StaticString) -> Bool {
        guard Int(entry.nameCount) == name.utf8CodeUnitCount else { return false }
        return bytes.withUnsafeBufferPointer { Self.isNamed(entry, name, in: $0) }
    }

    private static func isNamed(
        _ entry: Entry, _ name: StaticString, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let count = name.utf8CodeUnitCount
        guard Int(entry.nameCount) == count else { return false }
        let found = UnsafeBufferPointer(rebasing: bytes[entry.name])
        // Nearly always the name has its usual spelling.
        if let start = found.baseAddress, memcmp(start, name.utf8Start, count) == 0 { return true }
        for index in 0..<count
        where Grammar.lowercased(found[index]) != Grammar.lowercased(name.utf8Start[index]) {
            return false
        }
        return true
    }

    /// The number of fields called `name`.
    func count(of name: StaticString) -> Int {
        guard mayHave(name) else { return 0 }
        var count = 0
        for entry in entries where isNamed(entry, name) { count += 1 }
        return count
    }

    func name(_ entry: Entry) -> String {
        bytes.withUnsafeBufferPointer { bytes in
            String(decoding: UnsafeBufferPointer(rebasing: bytes[entry.name]), as: UTF8.self)
        }
    }

    func value(_ entry: Entry) -> String {
        bytes.withUnsafeBufferPointer { Self.text(UnsafeBufferPointer(rebasing: $0[entry.value])) }
    }

    /// A value as text: UTF-8 if it is valid, otherwise ISO 8859-1, the former charset of fields (RFC 9110
    /// §5.5). No byte is lost that way.
    package static func text(_ value: UnsafeBufferPointer<UInt8>) -> String {
        returnableText(value) ?? String(String.UnicodeScalarView(value.lazy.map { Unicode.Scalar($0) }))
    }

    /// A value as text that is sent back in the bytes that came; nil if it is not UTF-8.
    static func returnableText(_ value: UnsafeBufferPointer<UInt8>) -> String? {
        isASCII(value) ? String(decoding: value, as: UTF8.self) : String(validating: value, as: UTF8.self)
    }

    /// Makes a text only where the value is not ASCII.
    static func isUTF8(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        isASCII(value) || String(validating: value, as: UTF8.self) != nil
    }

    /// Whether all bytes are ASCII. Asked first, because the standard library's check for UTF-8 takes several
    /// times as long.
    private static func isASCII(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        var union: UInt8 = 0
        for byte in value { union |= byte }
        return union < 0x80
    }

    /// The value of a field that has a URI or a relative reference. A URI stands for bytes (RFC 3986 §2.1):
    /// where the value is not UTF-8, those beyond ASCII are percent-encoded as they are.
    package static func reference(_ value: UnsafeBufferPointer<UInt8>) -> String {
        String(validating: value, as: UTF8.self)
            ?? value.map {
                $0 < 0x80 ? String(Unicode.Scalar($0)) : "%" + String($0, radix: 16, uppercase: true)
            }.joined()
    }

    /// Fields with a single value instead of a list; their repetitions cannot be joined (RFC 9110 §5.3).
    package static func isSingular(_ name: String) -> Bool {
        switch name.lowercased() {
        case "age", "authorization", "content-disposition", "content-length", "content-location",
            "content-range", "content-type", "date", "etag", "expires", "from", "host", "if-modified-since",
            "if-range", "if-unmodified-since", "last-modified", "location", "proxy-authorization", "referer",
            "retry-after", "server", "set-cookie", "set-cookie2", "strict-transport-security", "user-agent":
            true
        default:
            false
        }
    }
}

extension HeaderFields: Equatable {
    /// The same fields in the same order: names are compared without regard to case, values byte by byte.
    package static func == (left: HeaderFields, right: HeaderFields) -> Bool {
        left.entries.elementsEqual(right.entries) { mine, other in
            Grammar.equalIgnoringCase(left.bytes[mine.name], right.bytes[other.name])
                && left.bytes[mine.value] == right.bytes[other.value]
        }
    }
}

extension HeaderFields: Sequence {
    package struct Iterator: IteratorProtocol {
        private let fields: HeaderFields
        private var index = 0

        init(_ fields: HeaderFields) { self.fields = fields }

        package mutating func next() -> (name: String, value: String)? {
            guard index < fields.entries.count else { return nil }
            defer { index += 1 }
            return (fields.name(fields.entries[index]), fields.value(fields.entries[index]))
        }
    }

    /// The fields in order, with their names as spelled.
    package func makeIterator() -> Iterator { Iterator(self) }
    package var underestimatedCount: Int { count }
}

extension HeaderFields: CustomStringConvertible {
    /// One field in each line. This shows credentials and cookies: not for logs.
    package var description: String {
        map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }
}

extension [UInt8] {
    /// Appends contiguous memory, which is faster than `append(contentsOf: text.utf8)`.
    mutating func append(text: String) {
        var text = text
        text.withUTF8 { append(contentsOf: $0) }
    }
}

extension StaticString {
    var utf8Bytes: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)
    }
}

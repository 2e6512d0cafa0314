internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

/// The fields of a response as `HTTPURLResponse` has them: one of a name, spelled in Foundation's way.
enum ResponseFields {
    /// A field of the last head, as it came and as it was given on.
    private struct Known {
        let receivedName: [UInt8]
        let name: String
        /// One of those that Foundation leaves as they came.
        let isExperimental: Bool
        /// Of several of this name the first one counts.
        let isSingular: Bool
        var receivedValue: [UInt8] = []
        var value = ""

        init(_ received: UnsafeBufferPointer<UInt8>) {
            receivedName = Array(received)
            let text = String(decoding: received, as: UTF8.self)
            isExperimental = text.hasPrefix("x-") || text.hasPrefix("X-")
            isSingular = HeaderFields.isSingular(text) && !ResponseFields.joined.contains(text.lowercased())
            if isExperimental {
                name = text
            } else {
                name = text.lowercased() == "www-authenticate" ? "WWW-Authenticate" : text.capitalized
            }
        }

        func isNamed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool { Self.areSame(receivedName, bytes) }

        /// - Returns: Whether it is another one.
        mutating func take(_ received: UnsafeBufferPointer<UInt8>) -> Bool {
            if Self.areSame(receivedValue, received), !received.isEmpty { return false }
            value = HeaderFields.text(received)
            receivedValue = received.count <= maximumValue ? Array(received) : []
            return true
        }

        private static func areSame(_ known: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
            guard known.count == bytes.count, let start = bytes.baseAddress else { return false }
            return known.withUnsafeBytes { known in
                known.baseAddress.map { memcmp($0, start, bytes.count) == 0 } ?? false
            }
        }
    }

    /// Fields that hold one value and are joined all the same: Foundation's reader of cookies takes them apart again,
    /// and of media types the last one counts (`MediaTypeField`).
    private static let joined: Set<String> = ["set-cookie", "set-cookie2", "content-type"]

    /// Fields that are remembered, and bytes of a value.
    private static let maximumRemembered = 64
    private static let maximumValue = 256

    /// The last head, in its order: the next one often has the same names in the same places, and mostly the
    /// same values, those of a server and of this second.
    private struct Memory {
        var known: [Known] = []
        /// Of the known fields as they stand; nil where two of them were one.
        var dictionary: [String: String]?
        /// What the dictionary was made of; nil where that is large.
        var fields: HeaderFields?
    }

    private static let memory = Mutex(Memory())

    static func dictionary(_ head: ResponseHead) -> [String: String] {
        memory.withLock { memory in
            if let dictionary = memory.dictionary, let known = memory.fields,
                head.fields.areCopied(from: known)
            {
                return dictionary
            }
            memory.fields = head.fields.size <= ResponseHead.maximumRemembered ? head.fields : nil
            if let dictionary = renewed(head.fields, &memory) { return dictionary }
            var fields: [String: String] = [:]
            fields.reserveCapacity(head.fields.count)
            var index = 0
            head.fields.forEachField { received, value in
                defer { index += 1 }
                var field =
                    index < memory.known.count && memory.known[index].isNamed(received)
                    ? memory.known[index] : Known(received)
                _ = field.take(value)
                if index < memory.known.count {
                    memory.known[index] = field
                } else if index < maximumRemembered {
                    memory.known.append(field)
                }
                add(field, to: &fields)
            }
            let isWhole = index == fields.count && index <= maximumRemembered
            if isWhole, memory.known.count > index { memory.known.removeSubrange(index...) }
            memory.dictionary = isWhole ? fields : nil
            return fields
        }
    }

    /// The last dictionary with what is new in it; nil where other fields came, or in another order.
    private static func renewed(_ fields: HeaderFields, _ memory: inout Memory) -> [String: String]? {
        guard memory.dictionary != nil, fields.count == memory.known.count else { return nil }
        var index = 0
        var areSame = true
        fields.forEachField { name, value in
            defer { index += 1 }
            areSame = areSame && memory.known[index].isNamed(name)
            if areSame, memory.known[index].take(value) {
                memory.dictionary?[memory.known[index].name] = memory.known[index].value
            }
        }
        if !areSame { memory.dictionary = nil }
        return memory.dictionary
    }

    private static func add(_ field: Known, to fields: inout [String: String]) {
        var name = field.name
        // In whatever case, it is one field.
        if field.isExperimental, fields[name] == nil {
            name = fields.keys.first { Grammar.equalIgnoringCase($0.utf8, name.utf8) } ?? name
        }
        if field.isSingular, fields[name] != nil { return }
        // Fields that come again are one list (RFC 9110 §5.3).
        if let before = fields.updateValue(field.value, forKey: name) {
            fields[name] = before + ", " + field.value
        }
    }
}

/// Where an `HTTPURLResponse` keeps its fields.
///
/// Its initialiser on Linux spells every name anew, by way of NSString: 20 µs for the response to a small GET,
/// more than all else about it. A response is therefore made without fields, and given those afterwards. Where
/// they belong is not promised anywhere: it is found out once, by looking for the fields of a sample. If a
/// sample that is filled in this way is not in all equal to one that Foundation has filled, or anything else is not
/// as it was, the initialiser does it as ever.
enum ResponseFieldsPlace {
    /// Bytes from the start of the object; nil: not known.
    private static let offset: Int? = find()

    static var isKnown: Bool { offset != nil }

    /// The place must be known, and `response` of a subclass, which has it where its superclass does.
    static func put(_ fields: [String: String], into response: HTTPURLResponse) {
        guard let offset else { preconditionFailure("bug in Rondo: nobody knows where the fields are") }
        // Safe: `find` has seen a dictionary of this type there, and nobody else has the object yet.
        withExtendedLifetime(response) { write(fields, at: offset, of: response) }
    }

    private static func write(_ fields: [String: String], at offset: Int, of response: HTTPURLResponse) {
        let place = Unmanaged.passUnretained(response).toOpaque() + offset
        // An assignment: the empty dictionary that was there is let go of as any other is.
        place.assumingMemoryBound(to: [String: String].self).pointee = fields
    }

    private static func find() -> Int? {
        let fields = ["X-Sample": "one", "Content-Type": "two"]
        guard let url = URL(string: "http://sample/"),
            let sample = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields),
            let empty = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil),
            let kept = Mirror(reflecting: sample).descendant("_allHeaderFields") as? [String: String],
            kept == fields, MemoryLayout.size(ofValue: kept) == MemoryLayout<UInt>.size
        else { return nil }
        // The dictionary is one word, the address of its storage: `sample` has it in one of its own words.
        let word = unsafeBitCast(kept, to: UInt.self)
        let size = allocationSize(of: sample)
        let offsets = withExtendedLifetime((sample, kept)) {
            let object = Unmanaged.passUnretained(sample).toOpaque()
            return stride(from: 0, through: size - MemoryLayout<UInt>.size, by: MemoryLayout<UInt>.size)
                .filter { object.load(fromByteOffset: $0, as: UInt.self) == word }
        }
        guard offsets.count == 1, let offset = offsets.first else { return nil }
        withExtendedLifetime(empty) { write(fields, at: offset, of: empty) }
        let filled = empty.allHeaderFields as? [String: String]
        return filled == fields && empty.value(forHTTPHeaderField: "x-sample") == "one" ? offset : nil
    }
}

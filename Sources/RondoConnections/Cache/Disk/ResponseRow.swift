internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A response as a row of the database: the columns of table `response`, and how they are read and written.
///
/// A row that cannot be read back exactly as it was written is ignored: it has a checksum over all its
/// values.
enum ResponseRow {
    /// Incremented with every change of the table or of the meaning of its columns; a file of another version
    /// is removed.
    static let version: Int32 = 4

    /// Rows are stored in the order in which they were written, so that responses that come together are
    /// written to the same pages, and the oldest ones are removed together.
    static let schema = """
        CREATE TABLE response(
            place INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, date REAL NOT NULL,
            name TEXT NOT NULL, status INTEGER, fields TEXT, requested REAL, received REAL, selecting TEXT, length INTEGER,
            given BLOB, sum INTEGER NOT NULL, content BLOB NOT NULL)
        """

    // MARK: Numbers

    /// A response that does not vary has the first number of its URL. The number of a variant is derived from
    /// what it varies by, so that a variant replaces its older version, and occasionally another variant.
    static func id(_ response: StoredResponse) -> Int64 {
        if response.selecting.isEmpty { return response.key }
        return response.key
            | (Checksum.of(text(response.selecting)) & (StoredResponse.variantsPerURL - 1))
    }

    // MARK: Writing

    /// The statements that write responses to a database.
    ///
    /// The number of a response is nearly always free: the owner removes the row that the response replaces.
    /// `INSERT OR REPLACE` would make SQLite prepare a rollback for each row, a third of the time of an
    /// insertion.
    final class Writer {
        private let insertion: Database.Statement
        private let deletion: Database.Statement
        private var last = LastFields()

        init(_ database: Database) throws(DatabaseError) {
            insertion = try database.prepare(
                "INSERT INTO response VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")
            deletion = try database.prepare("DELETE FROM response WHERE id = ?1")
        }

        /// Writes a response, in place of the variant that has its number.
        func write(_ response: StoredResponse) throws(DatabaseError) {
            do throws(DatabaseError) {
                try ResponseRow.insert(response, by: insertion, &last)
            } catch {
                guard error.isConstraintViolation else { throw error }
                deletion.bind(id(response), at: 1)
                try deletion.run()
                try ResponseRow.insert(response, by: insertion, &last)
            }
        }
    }

    /// The encoded fields of the responses that were written last: pages that come over one connection often
    /// share their head.
    private struct LastFields {
        /// Enough for the connections of several servers at a time.
        private static let maximumCount = 32

        private var texts: [(head: ResponseHead, text: String)] = []

        mutating func text(of head: ResponseHead) -> String {
            if let last = texts.last(where: { $0.head === head }) { return last.text }
            let text = ResponseRow.text(CacheEntry.storedFields(of: head))
            if head.fields.size > ResponseHead.maximumRemembered { return text }
            if texts.count >= Self.maximumCount { texts.removeFirst() }
            texts.append((head, text))
            return text
        }
    }

    private static func insert(
        _ response: StoredResponse, by insertion: Database.Statement, _ last: inout LastFields
    ) throws(DatabaseError) {
        let entry = response.writtenEntry
        let fields = text(of: entry, &last)
        let selecting = response.selecting.isEmpty ? nil : text(response.selecting)
        var length: Int64?
        var given: Data?
        switch response.form {
        case .ofEntry(let bodyLength): length = bodyLength
        case .given(let cached):
            given = ResponseForm.data(of: cached)
            // The response has no such form, and stays in memory only.
            if given == nil { return }
        }
        let numbers = Numbers(
            status: entry.status.map(Int64.init), requested: entry.requestedAt?.timeIntervalSince1970,
            received: entry.receivedAt?.timeIntervalSince1970, length: length,
            date: response.date.timeIntervalSince1970)

        insertion.bind(id(response), at: 1)
        insertion.bind(numbers.date, at: 2)
        insertion.bind(response.name, at: 3)
        insertion.bind(numbers.status, at: 4)
        insertion.bind(fields, at: 5)
        insertion.bind(numbers.requested, at: 6)
        insertion.bind(numbers.received, at: 7)
        insertion.bind(selecting, at: 8)
        insertion.bind(numbers.length, at: 9)
        insertion.bind(
            sum([response.name, fields ?? "", selecting ?? ""], numbers, given, response.content), at: 11)
        try insertion.bind(borrowing: response.content, at: 12) { () throws(DatabaseError) in
            if let given {
                try insertion.bind(borrowing: given, at: 10) { () throws(DatabaseError) in try insertion.run()
                }
            } else {
                insertion.bind(nil as String?, at: 10)
                try insertion.run()
            }
        }
    }

    // MARK: Reading

    static let query = """
        SELECT name, status, fields, requested, received, selecting, length, given, sum, date, content, place
        FROM response WHERE id BETWEEN ?1 AND ?1 + \(StoredResponse.variantsPerURL - 1)
        """

    /// The number of the current row of `query`; a row that was written later has a larger one.
    static func place(_ row: Database.Statement) -> Int64 { row.integer(11) }

    /// The response in the current row of `query`; nil if the row is of another URL, or broken.
    static func read(_ name: String, _ row: Database.Statement) -> StoredResponse? {
        guard row.text(0) == name else { return nil }
        let (fieldsText, selectingText) = (row.text(2), row.text(5))
        let content = row.data(10)
        let given = row.isNull(7) ? nil : row.data(7)
        let numbers = Numbers(row)
        guard sum([name, fieldsText, selectingText], numbers, given, content) == row.integer(8),
            let date = date(numbers.date)
        else { return nil }
        var entry: CacheEntry?
        if let status = numbers.status {
            guard 100...999 ~= status, let requested = numbers.requested.flatMap(Self.date),
                let received = numbers.received.flatMap(Self.date)
            else { return nil }
            entry = CacheEntry(
                status: Int(status), fields: fields(fieldsText), requestedAt: requested, receivedAt: received,
                selecting: selecting(selectingText))
        }
        if let given {
            guard let cached = ResponseForm.response(given, content) else { return nil }
            return StoredResponse(name, entry, cached)
        }
        return entry.map {
            StoredResponse(name, $0, content: content, bodyLength: numbers.length, date: date)
        }
    }

    /// The rules calculate with dates from Foundation's distant past to its distant future; dates outside of
    /// that range come from a broken row.
    private static func date(_ seconds: Double) -> Date? {
        let date = Date(timeIntervalSince1970: seconds)
        return Date.distantPast...Date.distantFuture ~= date ? date : nil
    }

    // MARK: The checksum

    /// The columns that hold numbers; dates in seconds since 1970.
    struct Numbers {
        var status: Int64?
        var requested: Double?
        var received: Double?
        var length: Int64?
        var date: Double
    }

    /// The checksum of all columns except the number.
    static func sum(_ texts: [String], _ numbers: Numbers, _ given: Data?, _ content: Data) -> Int64 {
        var sum = Checksum()
        for text in texts { sum.add(text) }
        sum.add(numbers.status)
        sum.add(numbers.requested)
        sum.add(numbers.received)
        sum.add(numbers.length)
        sum.add(numbers.date)
        if let given { sum.add(given) }
        sum.add(content)
        return sum.value
    }

    // MARK: Texts

    /// - Returns: Nil for a response that is not HTTP.
    private static func text(of entry: StoredResponse.WrittenEntry, _ last: inout LastFields) -> String? {
        switch entry {
        case .none: return nil
        case .made(let entry): return text(entry.fields)
        case .received(let head, _, _): return last.text(of: head)
        }
    }

    /// A line for each field. No value contains a line feed.
    static func text(_ fields: HeaderFields) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.size)
        fields.forEachField { name, value in
            bytes += name
            bytes.append(UInt8(ascii: ":"))
            if value.allSatisfy({ $0 < 0x80 }) {
                bytes += value
            } else {
                bytes += HeaderFields.text(value).utf8
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func fields(_ text: String) -> HeaderFields {
        var fields = HeaderFields(expecting: 8)
        var text = text
        text.withUTF8 { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let line = rest.prefix { $0 != UInt8(ascii: "\n") }
                rest = rest[line.endIndex...].dropFirst()
                guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
                fields.append(
                    name: UnsafeBufferPointer(rebasing: line[..<colon]),
                    value: UnsafeBufferPointer(rebasing: line[(colon + 1)...]))
            }
        }
        return fields
    }

    /// Two lines for each name: the name, which may contain any byte that a field name may, and the value
    /// after a colon. The second line is empty if the request had no such field.
    static func text(_ selecting: [String: String?]) -> String {
        selecting.sorted { $0.key < $1.key }
            .map { name, value in "\(name)\n\(value.map { ":\($0)" } ?? "")\n" }.joined()
    }

    static func selecting(_ text: String) -> [String: String?] {
        var selecting: [String: String?] = [:]
        // Splits bytes, not characters: a line feed or a colon can be part of a larger character.
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for index in stride(from: 0, to: lines.count - 1, by: 2) {
            let value = lines[index + 1].isEmpty ? nil : String(Substring(lines[index + 1].dropFirst()))
            selecting.updateValue(value, forKey: String(Substring(lines[index])))
        }
        return selecting
    }
}

extension ResponseRow.Numbers {
    /// The numbers in the current row of `ResponseRow.query`.
    init(_ row: Database.Statement) {
        status = row.isNull(1) ? nil : row.integer(1)
        requested = row.isNull(3) ? nil : row.double(3)
        received = row.isNull(4) ? nil : row.double(4)
        length = row.isNull(6) ? nil : row.integer(6)
        date = row.double(9)
    }
}

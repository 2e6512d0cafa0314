internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A response as it stands in the database: the columns of table `response`, and how they are read and written.
///
/// What cannot be read back exactly as it was written is no response: a row has a sum over all that is in it.
enum ResponseRow {
    /// Changes with every change of the table or of what its columns mean; a file of another version is removed.
    static let version: Int32 = 1

    ///
    /// Rows stand in the order in which they were written, so that what comes together is written to the same pages, and the
    /// oldest ones go together.
    static let schema = """
        CREATE TABLE response(
            place INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE, date REAL NOT NULL,
            name TEXT NOT NULL, status INTEGER, fields TEXT, requested REAL, received REAL, selecting TEXT, length INTEGER,
            given BLOB, sum INTEGER NOT NULL, content BLOB NOT NULL)
        """

    // MARK: Numbers

    /// The variants of a URL have numbers in a row, so that one range finds all.
    static let variantsPerURL: Int64 = 8

    /// A response that does not vary is the first; which number a variant has says what it varies by, so that it takes the
    /// place of what it replaces, and now and then of another one.
    static func id(_ response: KeptResponse) -> Int64 {
        if response.selecting.isEmpty { return response.key }
        return response.key | (KeptResponse.hash(text(response.selecting)) & (variantsPerURL - 1))
    }

    // MARK: Writing

    static let insertion = """
        INSERT OR REPLACE INTO response VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        """

    static func write(_ response: KeptResponse, by insertion: Database.Statement) throws(DatabaseError) {
        let entry = response.entry
        let fields = entry.map { text($0.fields) }
        let selecting = response.selecting.isEmpty ? nil : text(response.selecting)
        var length: Int64?
        var given: Data?
        switch response.shown {
        case .ofEntry(let bodyLength): length = bodyLength
        case .given(let cached):
            given = archive(cached)
            // It cannot be archived, and stays in memory alone.
            if given == nil { return }
        }
        var sum = Checksum()
        sum.add(response.name)
        sum.add(fields ?? "")
        sum.add(selecting ?? "")
        if let given { sum.add(given) }
        sum.add(response.content)

        insertion.bind(id(response), at: 1)
        insertion.bind(response.date.timeIntervalSince1970, at: 2)
        insertion.bind(response.name, at: 3)
        insertion.bind((entry?.status).map(Int64.init), at: 4)
        insertion.bind(fields, at: 5)
        insertion.bind(entry?.requestedAt.timeIntervalSince1970, at: 6)
        insertion.bind(entry?.receivedAt.timeIntervalSince1970, at: 7)
        insertion.bind(selecting, at: 8)
        insertion.bind(length, at: 9)
        insertion.bind(Int64(sum.value), at: 11)
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
        SELECT name, status, fields, requested, received, selecting, length, given, sum, date, content
        FROM response WHERE id BETWEEN ?1 AND ?1 + \(variantsPerURL - 1)
        """

    /// The response in the current row of `query`; nil where it is of another URL, or broken.
    static func read(_ name: String, _ row: Database.Statement) -> KeptResponse? {
        guard row.text(0) == name else { return nil }
        let (fieldsText, selectingText) = (row.text(2), row.text(5))
        let content = row.data(10)
        let given = row.isNull(7) ? nil : row.data(7)
        var sum = Checksum()
        sum.add(name)
        sum.add(fieldsText)
        sum.add(selectingText)
        if let given { sum.add(given) }
        sum.add(content)
        guard Int64(sum.value) == row.integer(8) else { return nil }
        var entry: CacheEntry?
        if !row.isNull(1) {
            guard let status = Int(exactly: row.integer(1)), 100...999 ~= status else { return nil }
            entry = CacheEntry(
                status: status, fields: fields(fieldsText),
                requestedAt: Date(timeIntervalSince1970: row.double(3)),
                receivedAt: Date(timeIntervalSince1970: row.double(4)), selecting: selecting(selectingText))
        }
        if let given {
            guard let cached = unarchive(given, content) else { return nil }
            return KeptResponse(name, entry, cached)
        }
        return entry.map {
            KeptResponse(
                name, $0, content: content, bodyLength: row.isNull(6) ? nil : row.integer(6),
                date: Date(timeIntervalSince1970: row.double(9)))
        }
    }

    // MARK: Texts

    /// A line for each field. No value has a line's end.
    static func text(_ fields: HeaderFields) -> String {
        var text = ""
        for (name, value) in fields { text += "\(name):\(value)\n" }
        return text
    }

    static func fields(_ text: String) -> HeaderFields {
        var fields = HeaderFields()
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            fields.append(
                name: String(Substring(line[..<colon])),
                value: String(Substring(line[line.index(after: colon)...])))
        }
        return fields
    }

    /// A line for each name, without a colon where the request had no such field.
    static func text(_ selecting: [String: String?]) -> String {
        selecting.sorted { $0.key < $1.key }
            .map { name, value in value.map { "\(name):\($0)\n" } ?? "\(name)\n" }.joined()
    }

    static func selecting(_ text: String) -> [String: String?] {
        var selecting: [String: String?] = [:]
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            selecting.updateValue(parts.count == 2 ? String(parts[1]) : nil, forKey: String(parts[0]))
        }
        return selecting
    }

    // MARK: What the program has made

    /// Nil where it cannot be archived.
    static func archive(_ cached: CachedURLResponse) -> Data? {
        var values: [String: Any] = [:]
        guard
            let response = try? NSKeyedArchiver.archivedData(
                withRootObject: cached.response, requiringSecureCoding: true)
        else { return nil }
        values["response"] = response
        if let userInfo = cached.userInfo, !userInfo.isEmpty { values["userInfo"] = userInfo }
        // It writes property lists alone, and says so by an error.
        return try? PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
    }

    static func unarchive(_ data: Data, _ content: Data) -> CachedURLResponse? {
        guard
            let values = try? PropertyListSerialization.propertyList(from: data, format: nil)
                as? [String: Any],
            let archived = values["response"] as? Data,
            let response = try? NSKeyedUnarchiver.unarchivedObject(
                ofClasses: [LoadedResponse.self, HTTPURLResponse.self, URLResponse.self], from: archived)
                as? URLResponse
        else { return nil }
        return CachedURLResponse(
            response: response, data: content, userInfo: values["userInfo"] as? [AnyHashable: Any],
            storagePolicy: .allowed)
    }
}

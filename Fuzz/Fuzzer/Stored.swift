import CFuzzer
import Foundation
import FoundationNetworking
import RondoHTTP

@testable import RondoConnections

private let now = Date(timeIntervalSince1970: 1_700_000_000)

/// Bytes of files that Rondo has written: their readers give what was stored, or nothing, and the file is used again.
///
/// The first byte says which reader.
func readStored(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var feed = Feed(bytes.dropFirst())
    StoredFile.prepare()
    switch first % 5 {
    case 0: readTexts(Array(feed.rest))
    case 1: readResponseRow(&feed)
    case 2: readCookieRow(&feed)
    case 3: StoredFile.cookies.read(&feed)
    default: StoredFile.responses.read(&feed)
    }
}

/// Values that are taken off the front of an input; zeros after its end.
struct Feed {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
    mutating func number(_ count: Int = 8) -> UInt64 { bytes(count).reduce(0) { $0 << 8 | UInt64($1) } }
    mutating func text() -> String { String(decoding: bytes(Int(byte())), as: UTF8.self) }
}

// MARK: Responses

/// The columns of a response that hold fields.
private func readTexts(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let fields = ResponseRow.fields(text)
    expectSame(fields, ResponseRow.fields(ResponseRow.text(fields)))
    let selecting = ResponseRow.selecting(text)
    expectSame(selecting, ResponseRow.selecting(ResponseRow.text(selecting)))

    // As a server sends them, and a request that it varies by.
    guard let head = head(bytes) else { return }
    expectSame(head.fields, ResponseRow.fields(ResponseRow.text(head.fields)))
    let values = head.fields.values(for: "X")
    let request = HeaderFields(
        (CacheEntry.selecting(head.fields, HeaderFields())).keys.sorted().enumerated()
            .filter { values.indices.contains($0.offset) }.map { ($0.element, values[$0.offset]) })
    let entry = CacheEntry(head, to: request, requestedAt: now, receivedAt: now)
    expectSame(entry.selecting, ResponseRow.selecting(ResponseRow.text(entry.selecting)))
}

private func head(_ bytes: [UInt8]) -> ResponseHead? {
    var codec = HTTP1Codec()
    var request: [UInt8] = []
    let head = RequestHead(method: "GET", target: "/", fields: HeaderFields([("Host", "a")]))
    do {
        try codec.send(head: head, body: .none, into: &request)
        try codec.sendEnd(into: &request)
        let response = Array("HTTP/1.1 200 OK\r\n".utf8) + bytes + Array("\r\n\r\n".utf8)
        var consumed = 0
        let event = try response.withUnsafeBytes { try codec.nextEvent(from: $0, consumed: &consumed) }
        if case .response(let head, _) = event { return head }
    } catch {}
    return nil
}

private func expectSame(_ fields: HeaderFields, _ again: HeaderFields) {
    let isSame = fields.elementsEqual(again) {
        $0.name.utf8.elementsEqual($1.name.utf8) && $0.value.utf8.elementsEqual($1.value.utf8)
    }
    if !isSame { fatalError("written: \(fields)\nread: \(again)") }
}

/// - Note: Strings are equal where Unicode has them look the same; these are to be the same bytes.
private func expectSame(_ selecting: [String: String?], _ again: [String: String?]) {
    let bytes = { (all: [String: String?]) in
        Dictionary(
            all.map { (Array($0.key.utf8), $0.value.map { Array($0.utf8) }) }, uniquingKeysWith: { $1 })
    }
    if bytes(selecting) != bytes(again) { fatalError("written: \(selecting)\nread: \(again)") }
}

/// A response is written, a column of its row changed, and it is read.
private func readResponseRow(_ feed: inout Feed) {
    let columns = [
        "name", "status", "fields", "requested", "received", "selecting", "length", "given", "date",
        "content",
    ]
    let all = StoredFile.sampleResponses
    let sample = all[Int(feed.byte()) % all.count]
    let (column, kind, keepsSum) = (
        columns[Int(feed.byte()) % columns.count], feed.byte(), feed.byte() & 1 == 0
    )
    do {
        let database = try StoredFile.table.get()
        try database.execute("DELETE FROM response")
        try ResponseRow.Writer(database).write(sample)
        let change = try database.prepare("UPDATE OR IGNORE response SET \(column) = ?1")
        switch kind % 5 {
        case 0: change.bind(Int64(bitPattern: feed.number()), at: 1)
        case 1: change.bind(Double(bitPattern: feed.number()), at: 1)
        case 2: change.bindNull(at: 1)
        case 3: change.bind(String(decoding: feed.rest, as: UTF8.self), at: 1)
        default:
            try change.bind(borrowing: Data(feed.rest), at: 1) { () throws(DatabaseError) in try change.run()
            }
        }
        // A column that may not be NULL stays what it was.
        if kind % 5 != 4 { try change.run() }
        let query = try database.prepare(ResponseRow.query)
        query.bind(sample.key, at: 1)
        if !keepsSum {
            guard try query.step() else { return }
            let sum = ResponseRow.sum(
                [sample.name, query.text(2), query.text(5)], ResponseRow.Numbers(query),
                query.isNull(7) ? nil : query.data(7), query.data(10))
            query.reset()
            try database.execute("UPDATE response SET sum = \(sum)")
        }
        guard try query.step() else { return }
        let read = ResponseRow.read(sample.name, query)
        query.reset()
        guard let read else { return }
        if keepsSum {
            expectSame(sample, read)
        } else {
            asLoad(read)
        }
    } catch {
        // As where a column that may not be NULL is to be.
        let constraint: Int32 = 19
        if (error as? DatabaseError).map({ $0.code & 0xff }) != constraint { fatalError("\(error)") }
    }
}

private func expectSame(_ sample: StoredResponse, _ read: StoredResponse) {
    guard let url = URL(string: sample.name), let left = sample.cached(url), let right = read.cached(url)
    else {
        fatalError("no response is seen")
    }
    if sample.entry != read.entry { fatalError("\(String(describing: read.entry))") }
    if left.data != right.data { fatalError("other content") }
    if !sample.selecting.isEmpty { expectSame(sample.selecting, read.selecting) }
    if left.response.expectedContentLength != right.response.expectedContentLength {
        fatalError("\(right.response.expectedContentLength)")
    }
    if case .ofEntry = sample.form, sample.date != read.date { fatalError("\(read.date)") }
    if left.response.mimeType != right.response.mimeType { fatalError("\(right.response)") }
}

/// As a load does.
private func asLoad(_ response: StoredResponse) {
    guard let url = URL(string: response.name) else { return }
    _ = response.cached(url)
    guard let found = response.found(url) else { return }
    _ = found.response(at: now)
    for policy in CachePolicy.allCases {
        _ = CacheRules.decide(policy, request: HeaderFields(), entry: found.entry, now: now)
    }
}

// MARK: Cookies

/// A row with the right digest and any columns, and a good one of which some were changed.
private func readCookieRow(_ feed: inout Feed) {
    let sample = StoredFile.sampleCookies[Int(feed.byte()) % StoredFile.sampleCookies.count].columns
    var columns = sample
    for _ in 0..<(feed.byte() & 7) {
        switch feed.byte() % 10 {
        case 0: columns.domain = feed.text()
        case 1: columns.isHostOnly = Int64(bitPattern: feed.number())
        case 2: columns.path = feed.text()
        case 3: columns.name = feed.text()
        case 4: columns.value = feed.byte() & 1 == 0 ? feed.text() : nil
        case 5: columns.expires = Double(bitPattern: feed.number())
        case 6: columns.created = Double(bitPattern: feed.number())
        case 7: columns.updated = Double(bitPattern: feed.number())
        case 8: columns.flags = Int64(bitPattern: feed.number())
        default: columns.replaced = feed.byte() & 1 == 0 ? Int64(bitPattern: feed.number()) : nil
        }
    }
    if columns != sample, CookieRow(columns, digest: sample.digest, now: now) != nil {
        fatalError("another row: \(columns)")
    }
    guard let row = CookieRow(columns, digest: columns.digest, now: now) else { return }
    guard CookieRow(row.columns, digest: row.columns.digest, now: now) == row else {
        fatalError("it cannot be read again: \(row)")
    }
    guard let cookie = row.cookie else { return }
    if cookie.key != row.key { fatalError("\(cookie) of \(row.key)") }
    if [cookie.name, cookie.value].joined().utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x3B }) {
        fatalError("two cookies: \(cookie)")
    }
    var ledger = CookieLedger()
    ledger.examine([], now: now)
    ledger.merge([row], now: now) { _ in false }
    while let step = ledger.nextStep(now: now) {
        guard case .set(let cookie) = step,
            let object = StoredCookie(cookie, observer: StorageChangeObserver {})
        else {
            continue
        }
        ledger.willShow(object)
        ledger.examine([object], now: now)
    }
    for row in ledger.takeRows(now: now) where row.cookie != nil {
        let columns = row.columns
        if CookieRow(columns, digest: columns.digest, now: now) == nil { fatalError("\(row) is no row") }
    }
}

// MARK: Files

/// A database file as it was written, whose bytes an input changes.
struct StoredFile: Sendable {
    private typealias Content = (suffix: String, bytes: [UInt8])

    /// The file and its journal, as a process leaves them that is killed.
    private let killed: [Content]
    private let whole: Content
    /// Reads all, and writes something that is there afterwards.
    private let use: @Sendable (URL) throws -> Void

    private static let folder: URL = {
        let memory = "/dev/shm"
        let base =
            access(memory, W_OK) == 0 ? URL(fileURLWithPath: memory) : FileManager.default.temporaryDirectory
        let folder = base.appendingPathComponent("rondo-fuzz-\(getpid())", isDirectory: true)
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(at: StoredFile.folder) }
        return folder
    }()
    /// Makes the samples, outside of the search for leaks: statics are not all seen there.
    static func prepare() { _ = isPrepared }

    private static let isPrepared: Bool = {
        __lsan_disable()
        defer { __lsan_enable() }
        _ = (sampleResponses, sampleCookies, cookies, responses)
        return (try? table.get()) != nil
    }()

    private static let file = folder.appendingPathComponent("stored.sqlite", isDirectory: false)

    // MARK: Changing

    func read(_ feed: inout Feed) {
        let isKilled = feed.byte() & 1 == 0
        var changed = isKilled ? killed : [whole]
        while !feed.rest.isEmpty {
            let kind = feed.byte()
            let part = Int(kind >> 4) % changed.count
            guard !changed[part].bytes.isEmpty else { break }
            let place = Int(feed.number(3)) % changed[part].bytes.count
            switch kind & 3 {
            case 0: changed[part].bytes[place] ^= max(1, feed.byte())
            case 1: changed[part].bytes.removeSubrange(place...)
            default:
                let bytes = feed.bytes(Int(feed.byte() & 31) + 1).prefix(changed[part].bytes.count - place)
                changed[part].bytes.replaceSubrange(place..<place + bytes.count, with: bytes)
            }
        }
        Database.remove(Self.file)
        for (suffix, bytes) in changed { Self.write(bytes, to: Self.file.path + suffix) }
        do { try use(Self.file) } catch { fatalError("it is not used again: \(error)") }
    }

    private static func write(_ bytes: [UInt8], to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { fatalError("\(path): \(errno)") }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.write(descriptor, $0.baseAddress! + written, bytes.count - written)
            }
            guard count > 0 else { fatalError("\(path): \(errno)") }
            written += count
        }
        close(descriptor)
    }

    /// What `make` has written before it closes the database, with the journal, and afterwards, without.
    private init(_ make: (URL) throws -> AnyObject, use: @escaping @Sendable (URL) throws -> Void) {
        let file = Self.folder.appendingPathComponent("sample.sqlite", isDirectory: false)
        Database.remove(file)
        func content(_ suffix: String) -> Content {
            guard let data = FileManager.default.contents(atPath: file.path + suffix) else {
                fatalError("there is no \(suffix)")
            }
            return (suffix, Array(data))
        }
        do {
            let open = try make(file)
            killed = [content(""), content("-wal")]
            withExtendedLifetime(open) {}
        } catch {
            fatalError("\(error)")
        }
        whole = content("")
        self.use = use
        Database.remove(file)
    }

    // MARK: Cookies

    static let sampleCookies: [CookieRow] = {
        let expires = now.addingTimeInterval(1000)
        var rows = (0..<40).map { index in
            let cookie = Cookie(
                name: "c\(index)", value: "\(index)-" + String(repeating: "v", count: index * 7),
                domain: "\(index % 3).example", isHostOnly: index & 1 == 0, path: "/", expires: expires,
                isSecure: index & 2 == 0, isHTTPOnly: index & 4 == 0, createdAt: now)
            return CookieRow(key: cookie.key, cookie: cookie, replaced: index % 5 == 0 ? Int64(index) : nil)
        }
        let gone = Cookie.Key(domain: "gone.example", isHostOnly: true, path: "/", name: "a")
        rows.append(CookieRow(key: gone, cookie: nil, replaced: 7))
        return rows
    }()

    static let cookies = StoredFile(
        { url in
            let file = try CookieFile(url)
            try file.write(sampleCookies)
            return file
        },
        use: { url in
            let new = Cookie(
                name: "new", value: "1", domain: "new.example", isHostOnly: true, path: "/",
                expires: now.addingTimeInterval(1000), createdAt: now.addingTimeInterval(1))
            let row = CookieRow(key: new.key, cookie: new, replaced: nil)
            do {
                let file = try CookieFile(url)
                for row in file.read(now: now).rows where !sampleCookies.contains(row) {
                    fatalError("\(row)")
                }
                do throws(DatabaseError) {
                    try file.write([row])
                } catch {
                    guard error.isCorruption else { throw error }
                    try file.makeAnew()
                    try file.write([row])
                }
            }
            let rows = try CookieFile(url).read(now: now).rows
            guard rows.contains(row) else { fatalError("what was written is not there: \(rows)") }
        })

    // MARK: Responses

    /// The database whose only row an input changes.
    ///
    /// `nonisolated(unsafe)`: libFuzzer gives inputs on one thread.
    nonisolated(unsafe) static let table = Result {
        try Database.open(
            folder.appendingPathComponent("row.sqlite", isDirectory: false), version: ResponseRow.version,
            schema: ResponseRow.schema)
    }

    static let sampleResponses: [StoredResponse] = {
        func name(_ index: Int) -> String { "http://host.example/\(index)" }
        func entry(_ fields: [(String, String)], _ selecting: [String: String?] = [:]) -> CacheEntry {
            CacheEntry(
                status: 200, fields: HeaderFields(fields), requestedAt: now, receivedAt: now,
                selecting: selecting)
        }
        var all = (0..<5).map { index in
            StoredResponse(
                name(index),
                entry([("Content-Type", "text/html"), ("Expires", "Sunday, 06-Nov-94 08:49:37 GMT")]),
                content: Data(repeating: UInt8(index), count: index * 1500), bodyLength: Int64(index * 1500),
                date: now)
        }
        for language in ["en", "de"] {
            all.append(
                StoredResponse(
                    name(5),
                    entry([("Vary", "Accept-Language, X")], ["accept-language": language, "x": nil]),
                    content: Data(language.utf8), bodyLength: nil, date: now))
        }
        guard let url = URL(string: name(6)),
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": "text/css"]
            )
        else { return all }
        let plain = URLResponse(
            url: url, mimeType: "text/mine", expectedContentLength: 3, textEncodingName: "utf-8")
        all.append(
            StoredResponse(
                name(6), entry([("A", "b")]), CachedURLResponse(response: response, data: Data("abc".utf8))))
        all.append(
            StoredResponse(
                name(7), nil,
                CachedURLResponse(
                    response: plain, data: Data("abc".utf8), userInfo: ["a": 1], storagePolicy: .allowed)))
        return all
    }()

    static let responses = StoredFile(
        { url in
            let database = try Database.open(url, version: ResponseRow.version, schema: ResponseRow.schema)
            let writer = try ResponseRow.Writer(database)
            for response in sampleResponses { try writer.write(response) }
            return writer
        },
        use: { url in
            let new = StoredResponse(
                "http://host.example/new",
                CacheEntry(status: 200, fields: HeaderFields(), requestedAt: now, receivedAt: now),
                content: Data("new".utf8), bodyLength: 3, date: now)
            for isSecond in [false, true] {
                do throws(DatabaseError) {
                    // Of one that is not there nothing is looked up.
                    if !isSecond { try lookUp(url) }
                    try write(new, url)
                    break
                } catch {
                    // Nothing else has the cache remove it.
                    guard error.isCorruption, !isSecond else { throw error }
                    Database.remove(url)
                }
            }
            guard try find(new, in: try Database(url, .lookUp)).count == 1 else {
                fatalError("what was written is not there")
            }
        })

    private static func lookUp(_ url: URL) throws(DatabaseError) {
        let database = try Database(url, .lookUp)
        for sample in sampleResponses {
            for found in try find(sample, in: database) {
                let isThere = sampleResponses.contains {
                    $0.name == found.name && $0.content == found.content && $0.entry == found.entry
                }
                if !isThere {
                    fatalError("\(found.name): \(String(describing: found.entry)), \(found.content)")
                }
                asLoad(found)
            }
        }
    }

    private static func find(
        _ sample: StoredResponse, in database: Database
    ) throws(DatabaseError) -> [StoredResponse] {
        let query = try database.prepare(ResponseRow.query)
        query.bind(sample.key, at: 1)
        var found: [StoredResponse] = []
        while try query.step() {
            if let response = ResponseRow.read(sample.name, query) { found.append(response) }
        }
        return found
    }

    /// What the thread that writes responses does.
    private static func write(_ response: StoredResponse, _ url: URL) throws(DatabaseError) {
        let database = try Database.open(url, version: ResponseRow.version, schema: ResponseRow.schema)
        let writer = try ResponseRow.Writer(database)
        try database.transaction { () throws(DatabaseError) in
            try database.execute(
                "DELETE FROM response WHERE id BETWEEN \(response.key) AND \(response.key + 7)")
            try writer.write(response)
        }
        _ = try database.number("PRAGMA page_count")
        _ = try database.number("PRAGMA freelist_count")
        _ = try database.number("SELECT count(*) FROM response")
        let numbers = try database.prepare("SELECT id FROM response")
        while try numbers.step() {}
        let deletion = try database.prepare(
            "DELETE FROM response WHERE place IN (SELECT place FROM response ORDER BY place LIMIT 1) RETURNING id"
        )
        while try deletion.step() {}
        try writer.write(response)
    }
}

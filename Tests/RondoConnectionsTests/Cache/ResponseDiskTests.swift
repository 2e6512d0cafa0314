import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoConnections

/// The database of Rondo's cache: which of its rows are found, and which are removed.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ResponseDiskTests {
    /// A folder of its own, and the database in it.
    private final class Folder {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("rondo-\(UUID().uuidString)")
        var file: URL { url.appendingPathComponent("responses.sqlite") }

        deinit { try? FileManager.default.removeItem(at: url) }

        func disk(_ capacity: Int = 1 << 22) -> ResponseDisk { ResponseDisk.at(file, capacity: capacity) }

        /// A connection as another process has it.
        func database() throws -> Database {
            try Database.open(file, version: ResponseRow.version, schema: ResponseRow.schema)
        }
    }

    private func stored(
        _ name: String, _ text: String = "text", _ selecting: [String: String?] = [:]
    ) -> StoredResponse {
        let now = Date()
        let entry = CacheEntry(
            status: 200, fields: HeaderFields([("A", "b")]), requestedAt: now, receivedAt: now,
            selecting: selecting)
        return StoredResponse(name, entry, content: Data(text.utf8), bodyLength: nil, date: now)
    }

    private func texts(_ name: String, on disk: ResponseDisk) -> [String] {
        disk.find(name, StoredResponse.key(name)).map { String(decoding: $0.content, as: UTF8.self) }
    }

    @Test func `RFC 9111 4.4 a removal concerns what another process has written, too`() throws {
        let folder = Folder()
        let disk = folder.disk()
        disk.insert(stored("a"))
        disk.flush()
        let stranger = try folder.database()
        try ResponseRow.Writer(stranger).write(stored("b"))
        disk.remove(StoredResponse.key("b"))
        disk.flush()
        #expect(try stranger.number("SELECT count(*) FROM response") == 1)
        #expect(texts("a", on: disk) == ["text"])
    }

    @Test func `RFC 9111 4 what is not stored removes from the disk only what is known there`() throws {
        let folder = Folder()
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: no-store"], body: "text")
            }
        }
        let cache = URLConnection.Cache(memoryCapacity: 0, diskCapacity: 1 << 22, diskPath: folder.url.path)
        let disk = folder.disk()
        disk.insert(stored("a"))
        disk.flush()
        let stranger = try folder.database()
        let name = WebAddress.name(of: server.url("/b"))
        try ResponseRow.Writer(stranger).write(stored(name))
        var request = URLRequest(url: server.url("/b"))
        request.cachePolicy = .reloadIgnoringLocalCacheData
        try load(request) { $0.configuration.cache = cache }
        disk.flush()
        #expect(try stranger.number("SELECT count(*) FROM response") == 2)
        disk.insert(stored(name))
        #expect(disk.mayHave(StoredResponse.key(name)))
        disk.flush()
        try load(request) { $0.configuration.cache = cache }
        #expect(!disk.mayHave(StoredResponse.key(name)))
        disk.flush()
        #expect(try stranger.number("SELECT count(*) FROM response") == 1)
    }

    @Test func `RFC 9111 4.3.5 a response to HEAD is not compared with what is on the disk alone`() throws {
        let folder = Folder()
        let tag = Box("old")
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let head = """
                    HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nETag: "\(tag.value)"\r\nContent-Length: 4\r\n\r\n
                    """
                try peer.send(request.method == "HEAD" ? head : head + "text")
            }
        }
        let cache = URLConnection.Cache(memoryCapacity: 0, diskCapacity: 1 << 22, diskPath: folder.url.path)
        for (method, count) in [("GET", 1), ("GET", 1), ("HEAD", 2), ("GET", 2)] {
            var request = URLRequest(url: server.url("/a"))
            request.httpMethod = method
            try load(request) { $0.configuration.cache = cache }
            #expect(server.requests.count == count)
            tag.value = count == 1 ? "new" : tag.value
        }
    }

    @Test func `RFC 9111 4.1 a response from before a URL varied, or varied so, is not found`() throws {
        let folder = Folder()
        let disk = folder.disk()
        // The rows of these have different numbers, so that none is overwritten by another.
        for (response, found) in [
            (stored("a", "any"), ["any"]),
            (stored("a", "of a user", ["x-user": "de"]), ["of a user"]),
            (stored("a", "English", ["accept-language": "en"]), ["English"]),
            (stored("a", "French", ["accept-language": "fr"]), ["English", "French"]),
        ] {
            disk.insert(response)
            disk.flush()
            #expect(texts("a", on: disk) == found)
        }
        let rows = try folder.database().number("SELECT count(*) FROM response")
        #expect(rows == 4)
    }

    @Test func `a disk that is opened keeps what its capacity has room for, and has one instance`() throws {
        let folder = Folder()
        let stranger = try ResponseRow.Writer(folder.database())
        for name in ["a", "b"] { try stranger.write(stored(name)) }
        let disk = folder.disk()
        disk.flush()
        #expect(texts("a", on: disk) == ["text"] && texts("b", on: disk) == ["text"])
        #expect(folder.disk(0) === disk)
        disk.flush()
        #expect(texts("a", on: disk) == [] && texts("b", on: disk) == [])
    }

    @Test func `a variant is still found when another one has made room`() throws {
        let folder = Folder()
        let disk = folder.disk(1 << 20)
        let filler = longText(10_000)
        var count = 0
        func fill() {
            count += 1
            disk.insert(stored("\(count)", filler))
            disk.flush()
        }
        disk.insert(stored("a", "old", ["accept-language": "de"]))
        for _ in 0..<40 { fill() }
        disk.insert(stored("a", "new", ["accept-language": "en"]))
        fill()
        #expect(texts("a", on: disk).sorted() == ["new", "old"])
        while texts("a", on: disk).count == 2, count < 400 { fill() }
        #expect(texts("a", on: disk) == ["new"])
    }

    @Test(arguments: [1 << 19, 1 << 18, 0])
    func `a smaller capacity leaves the newest, and none where it is 0`(capacity: Int) throws {
        let folder = Folder()
        let disk = folder.disk(1 << 21)
        // The oldest are the smallest.
        for number in 0..<100 {
            disk.insert(stored("\(number)", longText(20 + 100 * number)))
            disk.flush()
        }
        disk.setCapacity(capacity)
        disk.flush()
        let left = (0..<100).filter { !texts("\($0)", on: disk).isEmpty }
        #expect(left == Array((0..<100).suffix(left.count)))
        #expect(left.isEmpty == (capacity == 0))
        if capacity > 0 { #expect(disk.usage <= capacity) }
    }

    @Test func `a file that could not be opened at first has its responses when it can be`() throws {
        let folder = Folder()
        let aside = folder.url.appendingPathExtension("aside")
        defer { try? FileManager.default.removeItem(at: aside) }
        try ResponseRow.Writer(folder.database()).write(stored("a"))
        try FileManager.default.moveItem(at: folder.url, to: aside)
        // A folder in the file's place cannot be opened, nor is it removed as a broken file is.
        try FileManager.default.createDirectory(at: folder.file, withIntermediateDirectories: true)
        let disk = folder.disk()
        disk.flush()
        #expect(disk.mayHaveAny && disk.mayHave(StoredResponse.key("a")))
        try FileManager.default.removeItem(at: folder.url)
        try FileManager.default.moveItem(at: aside, to: folder.url)
        disk.insert(stored("b"))
        disk.flush()
        #expect(texts("a", on: disk) == ["text"] && texts("b", on: disk) == ["text"])
        #expect(!disk.mayHave(StoredResponse.key("c")))
    }
}

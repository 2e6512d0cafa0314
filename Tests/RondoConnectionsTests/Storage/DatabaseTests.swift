import CRondoSQLite
import Rondo
import RondoMutex
import Testing

import struct Synchronization.Atomic

@testable import RondoConnections

/// The database files that cookies and responses are kept in.
@Suite struct DatabaseTests {
    private static let schema = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT, bytes BLOB)"

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    private func mode(_ url: URL) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    private func insert(_ id: Int64, _ text: String?, _ bytes: Data, into database: Database) throws {
        let statement = try database.prepare("INSERT INTO note VALUES (?1, ?2, ?3)")
        statement.bind(id, at: 1)
        statement.bind(text, at: 2)
        try statement.bind(borrowing: bytes, at: 3) { () throws(DatabaseError) in try statement.run() }
    }

    @Test func `a database, its journals and new folders are for the user alone`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("a/b/notes.sqlite")
            let database = try Database.open(url, version: 1, schema: Self.schema)
            try insert(1, "one", Data([1]), into: database)
            for name in ["notes.sqlite", "notes.sqlite-wal", "notes.sqlite-shm"] {
                #expect(try mode(folder.appendingPathComponent("a/b/\(name)")) == 0o600, "\(name)")
            }
            #expect(try mode(folder) == 0o700)
            #expect(try mode(folder.appendingPathComponent("a/b")) == 0o700)
        }
    }

    /// To write it back takes a lock, for as long as the disk takes.
    @Test func `closing leaves the journal for the next connection`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            var database: Database? = try Database.open(url, version: 1, schema: Self.schema)
            try insert(1, "one", Data([1]), into: try #require(database))
            let journal = try Data(contentsOf: folder.appendingPathComponent("notes.sqlite-wal"))
            database = nil
            let left = try Data(contentsOf: folder.appendingPathComponent("notes.sqlite-wal"))
            #expect(left == journal && !left.isEmpty)
            #expect(try Database(url, .lookUp).number("SELECT count(*) FROM note") == 1)
        }
    }

    @Test func `a file that every user could read is for the user alone once it is opened`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            #expect(FileManager.default.createFile(atPath: url.path, contents: nil))
            chmod(url.path, 0o644)
            _ = try Database.open(url, version: 1, schema: Self.schema)
            #expect(try mode(url) == 0o600)
        }
    }

    @Test func `values come back as they were bound`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            let database = try Database.open(url, version: 1, schema: Self.schema)
            let rows: [(String?, Data)] = [
                ("", Data()), (nil, Data([0, 1, 255])), ("a\0b", Data(repeating: 7, count: 100_000)),
                ("ü", Data()),
            ]
            for (id, row) in rows.enumerated() { try insert(Int64(id), row.0, row.1, into: database) }
            let reader = try Database(url, .lookUp)
            let query = try reader.prepare("SELECT text, bytes FROM note WHERE id = ?1")
            for (id, row) in rows.enumerated() {
                query.bind(Int64(id), at: 1)
                #expect(try query.step())
                #expect(query.isNull(0) == (row.0 == nil))
                #expect(query.text(0) == row.0 ?? "")
                #expect(query.data(1) == row.1)
                query.reset()
            }
        }
    }

    @Test func `a transaction that fails leaves nothing`() throws {
        try withFolder { folder in
            let database = try Database.open(
                folder.appendingPathComponent("notes.sqlite"), version: 1, schema: Self.schema)
            #expect(throws: DatabaseError.self) {
                try database.transaction { () throws(DatabaseError) in
                    try database.execute("INSERT INTO note VALUES (1, 'one', NULL)")
                    try database.execute("INSERT INTO note VALUES (1, 'again', NULL)")
                }
            }
            #expect(try database.number("SELECT count(*) FROM note") == 0)
        }
    }

    @Test(arguments: [
        "no database at all", String(repeating: "x", count: 8192), "",
    ])
    func `a file that is broken or empty is made anew`(_ content: String) throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(content.utf8).write(to: url)
            let database = try Database.open(url, version: 1, schema: Self.schema)
            try insert(1, "one", Data(), into: database)
            #expect(try database.number("SELECT count(*) FROM note") == 1)
        }
    }

    @Test func `a file whose head forbids SQLite to write is made anew`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            try insert(1, "one", Data(), into: try Database.open(url, version: 1, schema: Self.schema))
            // A program that wrote the journal back has left this file alone.
            try Database(url, .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
            var bytes = try Data(contentsOf: url)
            // The version of the format that a writer has to know.
            bytes[18] = 0xFF
            try bytes.write(to: url)
            let database = try Database.open(url, version: 1, schema: Self.schema)
            try insert(2, "two", Data(), into: database)
            #expect(try database.number("SELECT count(*) FROM note") == 1)
        }
    }

    /// In a process of its own, in which SQLite opens files by another function.
    @Test func `UC-57 a file that for a moment can be opened for reading alone is left as it is`() async {
        await #expect(processExitsWith: .success) {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
                "rondo-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            let url = folder.appendingPathComponent("notes.sqlite")
            do {
                let database = try Database.open(url, version: 1, schema: DatabaseTests.schema)
                try database.execute("INSERT INTO note VALUES (1, 'one', NULL)")
            }
            // A second name, which a new file would not have.
            try FileManager.default.linkItem(at: url, to: folder.appendingPathComponent("copy"))
            typealias Opening = @convention(c) (UnsafePointer<CChar>?, Int32, Int32) -> Int32
            let opening: Opening = { path, flags, mode in
                if flags & O_ACCMODE == O_RDWR, !hasFailedToOpen.exchange(true, ordering: .relaxed) {
                    errno = EMFILE
                    return -1
                }
                guard let path else { return -1 }
                return open(path, flags, mode_t(mode))
            }
            guard let system = sqlite3_vfs_find(nil) else { preconditionFailure("SQLite has no system") }
            // SQLite declares its system calls without parameters, and calls this one with those of `open(2)`.
            let code = system.pointee.xSetSystemCall(
                system, "open", unsafeBitCast(opening, to: (@convention(c) () -> Void).self))
            precondition(code == SQLITE_OK)
            do throws(DatabaseError) {
                _ = try Database.open(url, version: 1, schema: DatabaseTests.schema)
                preconditionFailure("a file that cannot be written is used")
            } catch {
                precondition(!error.isCorruption, "\(error)")
            }
            precondition(hasFailedToOpen.load(ordering: .relaxed))
            let database = try Database.open(url, version: 1, schema: DatabaseTests.schema)
            let count = try database.number("SELECT count(*) FROM note")
            precondition(count == 1, "\(count) rows")
            var status = stat()
            precondition(stat(url.path, &status) == 0 && status.st_nlink == 2, "it is another file")
        }
    }

    @Test func `a file of another version is made anew`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            try insert(1, "one", Data(), into: try Database.open(url, version: 1, schema: Self.schema))
            let database = try Database.open(url, version: 2, schema: Self.schema)
            #expect(try database.number("SELECT count(*) FROM note") == 0)
        }
    }

    @Test func `another file type in the place of the database is an error that names it`() throws {
        try withFolder { folder in
            let url = folder.appendingPathComponent("notes.sqlite")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
            let error = #expect(throws: DatabaseError.self) {
                try Database.open(url, version: 1, schema: Self.schema)
            }
            #expect(error?.description.contains(url.path) == true)
            let fifo = folder.appendingPathComponent("fifo.sqlite")
            mkfifo(fifo.path, 0o600)
            #expect(throws: DatabaseError.self) {
                try Database.open(fifo, version: 1, schema: Self.schema)
            }
        }
    }

    @Test func `a background writer writes once for all that asked meanwhile`() {
        let calls = Mutex(0)
        let writer = BackgroundWriter("test", delay: { 3600 }) { calls.withLock { $0 += 1 } }
        for _ in 0..<100 { writer.ask() }
        writer.flush()
        #expect(calls.withLock { $0 } == 1)
    }

    @Test func `US-78 a flush ends though each write is followed by another request`() {
        let calls = Mutex(0)
        let asked = Mutex<BackgroundWriter?>(nil)
        let writer = BackgroundWriter("test", delay: { 3600 }) {
            let hasMore = calls.withLock { count -> Bool in
                count += 1
                return count < 1000
            }
            // As another thread does that stores all the time.
            if hasMore { asked.withLock { $0 }?.ask() }
        }
        asked.withLock { $0 = writer }
        writer.flush()
        #expect(calls.withLock { $0 } == 1)
        asked.withLock { $0 = nil }
    }
}

/// Whether the function that stands in for `open` has failed.
private let hasFailedToOpen = Atomic(false)

internal import CRondoSQLite
internal import RondoCore

/// A connection to a SQLite database in a file that only its user may read.
///
/// Not Sendable: SQLite's own locks are off, so only one thread at a time may use a connection and its
/// statements; the owner ensures that with a lock or a queue. Other connections, of this process and of
/// others, may use the same file at the same time.
final class Database {
    enum Access {
        /// Creates the file and its folder if they are missing, and waits for other connections.
        case readWrite
        /// Fails if the file is missing, and waits for `lookUpTimeout` at most: for look-ups on a run loop.
        case lookUp
    }

    /// The milliseconds for which a connection waits for one of another process, before it fails with
    /// `SQLITE_BUSY`.
    static let busyTimeout: Int32 = 2_000
    /// The milliseconds for which a look-up waits for a connection that has locked the file, as the first one
    /// does while it reads the journal of earlier connections. Look-ups of other loops wait for it meanwhile.
    static let lookUpTimeout: Int32 = 20

    fileprivate let connection: OpaquePointer

    init(_ url: URL, _ access: Access) throws(DatabaseError) {
        if access == .readWrite {
            do throws(SystemError) {
                try PrivateFile.makeFolder(url.deletingLastPathComponent())
                try PrivateFile.make(url)
            } catch {
                throw DatabaseError(error, url)
            }
        }
        var made: OpaquePointer?
        // SQLite never creates the file, because it would let every user read it; its journals get the file's
        // permissions. Look-ups open it for writing too: the first connection reads the journal of earlier
        // ones, and writes an index of it.
        let code = sqlite3_open_v2(url.path, &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, let made else {
            let error = DatabaseError(code, made)
            sqlite3_close_v2(made)
            throw error
        }
        connection = made
        sqlite3_extended_result_codes(made, 1)
        sqlite3_busy_timeout(made, access == .readWrite ? Self.busyTimeout : Self.lookUpTimeout)
        // The last connection that is closed would otherwise write the journal back into the file, wait for
        // the disk, and lock the file meanwhile.
        _ = rondo_sqlite3_keep_journal(made)
    }

    /// Statements that still exist keep the file open until they are released.
    deinit { sqlite3_close_v2(connection) }

    /// Opens the database. If its file is broken, is not a database or was made by another version, the file
    /// is replaced by a new one.
    ///
    /// - Parameters:
    ///   - version: The number of `schema`, other than 0. A file with another number is removed.
    ///   - schema: The statements that make the tables.
    static func open(
        _ url: URL, version: Int32, schema: String
    ) throws(DatabaseError) -> Database {
        do throws(DatabaseError) {
            return try opened(url, version, schema)
        } catch {
            guard error.isCorruption else { throw error }
            remove(url)
            return try opened(url, version, schema)
        }
    }

    private static func opened(
        _ url: URL, _ version: Int32, _ schema: String
    ) throws(DatabaseError) -> Database {
        let database = try Database(url, .readWrite)
        // Nothing has been read yet: the file could not be opened for writing, and was opened for reading
        // alone. If the user may write it, the cause passes, as a lack of descriptors does.
        if database.isReadOnly(url) { throw DatabaseError(SQLITE_CANTOPEN, nil) }
        // WAL: a process that is killed loses nothing that was committed; only a machine that loses power may
        // lose the last commits. If the file system does not support it, the journal is an ordinary one.
        // `synchronous = OFF`: a new file is created without waiting for the disk, because there is nothing
        // to lose yet. Pages of this size make writes cheap; larger ones waste more of the disk.
        try database.execute("PRAGMA synchronous = OFF; PRAGMA page_size = 8192; PRAGMA journal_mode = WAL;")
        try database.execute(
            "PRAGMA journal_size_limit = \(maximumJournalSize); PRAGMA wal_autocheckpoint = \(journalPages);")
        let found = try database.number("PRAGMA user_version")
        // Only now, after its header has been read: that is broken, and names a later format.
        if database.isReadOnly(url) { throw .otherVersion }
        if found != version {
            guard found == 0 else { throw .otherVersion }
            try database.make(version, schema)
        }
        try database.execute("PRAGMA synchronous = NORMAL;")
        return database
    }

    /// Whether SQLite does not write the file although the user may.
    private func isReadOnly(_ url: URL) -> Bool {
        sqlite3_db_readonly(connection, "main") == 1 && access(url.path, W_OK) == 0
    }

    private func make(_ version: Int32, _ schema: String) throws(DatabaseError) {
        do throws(DatabaseError) {
            try execute("BEGIN IMMEDIATE; \(schema); PRAGMA user_version = \(version); COMMIT;")
        } catch {
            // Another process may have created the tables first.
            try? execute("ROLLBACK")
            guard try number("PRAGMA user_version") == version else { throw error }
        }
    }

    /// The journal is truncated to this many bytes after it has been larger.
    static let maximumJournalSize = 8 << 20
    /// The number of pages, of 8 KiB each, at which the journal is written back into the file; that waits for
    /// the disk twice.
    private static let journalPages = maximumJournalSize >> 13

    /// Removes the file and its journals.
    static func remove(_ url: URL) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(url.path + suffix) }
    }

    // MARK: Statements

    /// Runs statements whose results are not needed.
    func execute(_ statements: String) throws(DatabaseError) {
        let code = sqlite3_exec(connection, statements, nil, nil, nil)
        guard code == SQLITE_OK else { throw DatabaseError(code, connection) }
    }

    /// The number in the first column of the first row; 0 if there is none.
    func number(_ query: String) throws(DatabaseError) -> Int64 {
        try prepare(query).number()
    }

    /// Whether the tables are intact, as far as SQLite can tell by reading all of them once. Some damage is
    /// not noticed by any statement that reads, and loses later writes.
    func isSound() throws(DatabaseError) -> Bool {
        let check = try prepare("PRAGMA quick_check(1)")
        return try check.step() && check.text(0) == "ok"
    }

    /// Makes a statement that may be run more than once; `?1`, `?2` … are parameters for bound values.
    func prepare(_ text: String) throws(DatabaseError) -> Statement { try Statement(self, text) }

    /// Commits all changes that `body` makes, or none of them.
    func transaction(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
        try execute("BEGIN IMMEDIATE")
        do throws(DatabaseError) {
            try body()
            try execute("COMMIT")
        } catch {
            // The transaction may have been rolled back already, for instance if the disk is full.
            try? execute("ROLLBACK")
            throw error
        }
    }

    /// A prepared statement. It retains its database.
    final class Statement {
        private let database: Database
        private let statement: OpaquePointer

        fileprivate init(_ database: Database, _ text: String) throws(DatabaseError) {
            var made: OpaquePointer?
            let code = sqlite3_prepare_v3(
                database.connection, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
            guard code == SQLITE_OK, let made else { throw DatabaseError(code, database.connection) }
            self.database = database
            statement = made
        }

        deinit { sqlite3_finalize(statement) }

        /// Binds `value` to the parameter `index`, counted from 1. It fails only if memory runs out, and then
        /// the next step reports that.
        func bind(_ value: Int64?, at index: Int32) {
            guard let value else { return bindNull(at: index) }
            sqlite3_bind_int64(statement, index, value)
        }
        func bind(_ value: Double?, at index: Int32) {
            guard let value else { return bindNull(at: index) }
            sqlite3_bind_double(statement, index, value)
        }
        func bindNull(at index: Int32) { sqlite3_bind_null(statement, index) }
        func bind(_ value: String?, at index: Int32) {
            guard var value else { return bindNull(at: index) }
            value.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    // A nil pointer would bind NULL.
                    _ = rondo_sqlite3_bind_text(
                        statement, index, $0.baseAddress ?? emptyText, Int32(bytes.count))
                }
            }
        }

        /// Binds `data` without a copy: `body` has to step, and the statement must not be stepped after
        /// `body` has returned.
        func bind<Result>(
            borrowing data: Data, at index: Int32, _ body: () throws(DatabaseError) -> Result
        ) throws(DatabaseError) -> Result {
            // `withUnsafeBytes` supports untyped errors only.
            let outcome = data.withUnsafeBytes { bytes -> Swift.Result<Result, DatabaseError> in
                // The bytes stay in place until `body` has returned; a nil pointer would bind NULL.
                if let start = bytes.baseAddress {
                    sqlite3_bind_blob64(statement, index, start, UInt64(bytes.count), nil)
                } else {
                    sqlite3_bind_zeroblob(statement, index, 0)
                }
                defer { sqlite3_bind_null(statement, index) }
                do throws(DatabaseError) {
                    let result = try body()
                    sqlite3_reset(statement)
                    return .success(result)
                } catch {
                    sqlite3_reset(statement)
                    return .failure(error)
                }
            }
            return try outcome.get()
        }

        /// Advances to the next row.
        ///
        /// - Returns: False if there is none; then the statement can be run again.
        func step() throws(DatabaseError) -> Bool {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: return true
            case SQLITE_DONE:
                sqlite3_reset(statement)
                return false
            case let code:
                let error = DatabaseError(code, database.connection)
                sqlite3_reset(statement)
                throw error
            }
        }

        /// Runs a statement and ignores its rows.
        func run() throws(DatabaseError) {
            while try step() {}
        }

        /// The number in the first column of the first row; 0 if there is none.
        func number() throws(DatabaseError) -> Int64 {
            defer { reset() }
            return try step() ? integer(0) : 0
        }

        /// Resets the statement to its start, and keeps the bound values.
        func reset() { sqlite3_reset(statement) }

        // Columns of the current row, counted from 0. SQLite converts values of other types.

        func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }
        func double(_ column: Int32) -> Double { sqlite3_column_double(statement, column) }
        func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

        func text(_ column: Int32) -> String {
            guard let start = sqlite3_column_text(statement, column) else { return "" }
            let count = Int(sqlite3_column_bytes(statement, column))
            return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        }

        func data(_ column: Int32) -> Data {
            guard let start = sqlite3_column_blob(statement, column) else { return Data() }
            return Data(bytes: start, count: Int(sqlite3_column_bytes(statement, column)))
        }
    }
}

/// A pointer that stands for the bytes of an empty text. It is never read.
///
/// `nonisolated(unsafe)`: it is allocated once, and nothing writes to it.
private nonisolated(unsafe) let emptyText = UnsafePointer(UnsafeMutablePointer<CChar>.allocate(capacity: 1))

internal import RondoCore
internal import RondoHTTP

internal import struct Synchronization.Atomic

/// The cookies that loads have received and that outlive the process, in a database that their user alone may
/// read.
///
/// Other processes of the same program may use it too: each writes the rows of its own cookies, and reads the
/// rows of the other processes when it starts. A process does not replace a row that has been changed later
/// than it knows, and does not write a row anew that another process has removed since it was read.
final class CookieFile {
    static let version: Int32 = 1
    static let schema = """
        CREATE TABLE cookie(
            domain TEXT NOT NULL, host_only INTEGER NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL, value TEXT,
            expires REAL NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, flags INTEGER NOT NULL,
            replaced INTEGER, digest INTEGER NOT NULL,
            PRIMARY KEY(domain, host_only, path, name)) WITHOUT ROWID
        """

    let url: URL
    private var database: Database
    private var insertion: Database.Statement
    private var deletion: Database.Statement

    init(_ url: URL) throws(DatabaseError) {
        self.url = url
        (database, insertion, deletion) = try Self.open(url)
    }

    private static func open(
        _ url: URL
    ) throws(DatabaseError) -> (Database, Database.Statement, Database.Statement) {
        let database = try Database.open(url, version: version, schema: schema)
        do throws(DatabaseError) {
            return try prepared(database)
        } catch {
            // The version number is right, but the tables are wrong.
            guard error.isCorruption else { throw error }
            Database.remove(url)
            return try prepared(try Database.open(url, version: version, schema: schema))
        }
    }

    private static func prepared(
        _ database: Database
    ) throws(DatabaseError) -> (Database, Database.Statement, Database.Statement) {
        (
            database,
            try database.prepare(
                """
                INSERT INTO cookie(domain, host_only, path, name, value, expires, created, updated, flags, replaced, digest)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
                WHERE NOT ?12 OR EXISTS (
                    SELECT 1 FROM cookie WHERE domain = ?1 AND host_only = ?2 AND path = ?3 AND name = ?4)
                ON CONFLICT(domain, host_only, path, name) DO UPDATE SET
                    value = excluded.value, expires = excluded.expires, created = excluded.created,
                    updated = excluded.updated, flags = excluded.flags, replaced = excluded.replaced,
                    digest = excluded.digest
                WHERE excluded.updated >= cookie.updated
                """),
            try database.prepare(
                """
                DELETE FROM cookie
                WHERE domain = ?1 AND host_only = ?2 AND path = ?3 AND name = ?4 AND updated <= ?5
                """)
        )
    }

    // MARK: Reading

    /// The rows that can be read, those that were set last at the end; only these, if there are more than may
    /// be kept.
    ///
    /// - Returns: The rows, and whether the file was broken and has been replaced by an empty one.
    func read(now: Date) -> (rows: [CookieRow], wasBroken: Bool) {
        var rows: [CookieRow] = []
        var unreadable: [Int64] = []
        do throws(DatabaseError) {
            let query = try database.prepare(
                "SELECT domain, host_only, path, name, value, expires, created, updated, flags, replaced, digest "
                    + "FROM cookie ORDER BY updated DESC LIMIT \(Self.maximumCount)")
            while try query.step() {
                let columns = CookieRow.Columns(
                    domain: query.text(0), isHostOnly: query.integer(1), path: query.text(2),
                    name: query.text(3), value: query.isNull(4) ? nil : query.text(4),
                    expires: query.double(5), created: query.double(6), updated: query.double(7),
                    flags: query.integer(8), replaced: query.isNull(9) ? nil : query.integer(9))
                let digest = query.integer(10)
                if let row = CookieRow(columns, digest: digest, now: now) {
                    rows.append(row)
                } else {
                    unreadable.append(digest)
                }
            }
            // A file that cannot be replaced either stays as it is: the next process tries again.
            guard try database.isSound() else { return (rows.reversed(), (try? makeAnew()) != nil) }
            try purge(now: now, unreadable)
            return (rows.reversed(), false)
        } catch {
            guard error.isCorruption else { return (rows.reversed(), false) }
            return (rows.reversed(), (try? makeAnew()) != nil)
        }
    }

    /// The maximum of rows that are read. More can only come from other processes, or from earlier times.
    static let maximumCount = 2 * CookieRules.maximumCount

    /// - Parameter unreadable: The digests of damaged rows. Their time may be damaged too, so that they would
    ///   stay for good.
    private func purge(now: Date, _ unreadable: [Int64]) throws(DatabaseError) {
        if !unreadable.isEmpty {
            let digests = unreadable.map { String($0) }.joined(separator: ", ")
            try database.execute("DELETE FROM cookie WHERE digest IN (\(digests))")
        }
        let latest = now.timeIntervalSince1970
        if try database.number("SELECT count(*) FROM cookie WHERE value IS NOT NULL AND expires <= \(latest)")
            > 0
        {
            try database.execute("DELETE FROM cookie WHERE value IS NOT NULL AND expires <= \(latest)")
        }
        guard try database.number("SELECT count(*) FROM cookie") > Self.maximumCount else { return }
        try database.execute(
            """
            DELETE FROM cookie WHERE (domain, host_only, path, name) IN (
                SELECT domain, host_only, path, name FROM cookie ORDER BY updated DESC LIMIT -1
                OFFSET \(Self.maximumCount))
            """)
    }

    // MARK: Writing

    /// Writes rows, all or none of them, but for those that another process has changed later, or has removed
    /// since they were read. A row with neither a cookie nor a replaced digest is removed.
    func write(_ rows: [CookieRow]) throws(DatabaseError) {
        try database.transaction { () throws(DatabaseError) in
            for row in rows {
                if row.cookie == nil, row.replaced == nil {
                    let columns = row.columns
                    bind(columns, to: deletion)
                    deletion.bind(columns.updated, at: 5)
                    try deletion.run()
                } else {
                    let columns = row.columns
                    bind(columns, to: insertion)
                    insertion.bind(columns.value, at: 5)
                    insertion.bind(columns.expires, at: 6)
                    insertion.bind(columns.created, at: 7)
                    insertion.bind(columns.updated, at: 8)
                    insertion.bind(columns.flags, at: 9)
                    if let replaced = columns.replaced {
                        insertion.bind(replaced, at: 10)
                    } else {
                        insertion.bind(nil as String?, at: 10)
                    }
                    insertion.bind(columns.digest, at: 11)
                    insertion.bind(Int64(row.isOnlyRead ? 1 : 0), at: 12)
                    try insertion.run()
                }
            }
        }
    }

    private func bind(_ columns: CookieRow.Columns, to statement: Database.Statement) {
        statement.bind(columns.domain, at: 1)
        statement.bind(columns.isHostOnly, at: 2)
        statement.bind(columns.path, at: 3)
        statement.bind(columns.name, at: 4)
    }

    /// Replaces a broken file by an empty one.
    func makeAnew() throws(DatabaseError) {
        Database.remove(url)
        (database, insertion, deletion) = try Self.open(url)
    }

    // MARK: Failures

    private static let hasTold = Atomic(false)

    /// Logs, once in a process, that a file cannot be used.
    static func tell(_ error: DatabaseError, _ url: URL) {
        if hasTold.exchange(true, ordering: .relaxed) { return }
        Log.connections.warning(
            "\(url.path) cannot be used (\(error)): cookies that loads receive are remembered until the program ends"
        )
    }
}

internal import CRondoSQLite
internal import RondoCore

/// The reason why a database could not be used, in SQLite's words or the kernel's.
struct DatabaseError: Error, Equatable, CustomStringConvertible {
    /// SQLite's extended result code.
    let code: Int32
    let description: String

    /// - Parameter connection: Nil if it could not even be allocated.
    init(_ code: Int32, _ connection: OpaquePointer?) {
        self.code = connection.map { sqlite3_extended_errcode($0) } ?? code
        let sentence = connection.flatMap(sqlite3_errmsg) ?? sqlite3_errstr(code)
        description = "SQLite: \(sentence.map { String(cString: $0) } ?? "error") (\(self.code))"
    }

    init(_ error: SystemError, _ url: URL) {
        code = SQLITE_CANTOPEN
        description = "\(url.path): \(error)"
    }

    private init(code: Int32, _ description: String) { (self.code, self.description) = (code, description) }

    /// The file was written by another version of Rondo.
    static let otherVersion = DatabaseError(code: SQLITE_SCHEMA, "the file has another version")

    /// SQLITE_IOERR_SHORT_READ, whose macro the importer cannot import.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    /// Whether the file is corrupt, so that it can be removed.
    var isCorruption: Bool {
        [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_SCHEMA].contains(code & 0xff)
            // A column or table is missing.
            || code == SQLITE_ERROR
            // A constraint fails although the tables allow everything that is written, so an index
            // contradicts them; or a row is longer than any that was ever written.
            || isConstraintViolation || code & 0xff == SQLITE_TOOBIG
            // The file ends within a page.
            || code == Self.shortRead
    }

    /// Whether a row with this number exists already.
    var isConstraintViolation: Bool { code & 0xff == SQLITE_CONSTRAINT }
}

internal import RondoCore
internal import RondoMutex

/// The file of a cookie store: opened when it is needed, made when there is a cookie to write, and made anew
/// if it is broken. Any thread.
final class CookieDisk: Sendable {
    /// The maximum of unwritten rows. Beyond it a file that cannot be written is not used any more.
    static let maximumUnwritten = 2 * CookieFile.maximumCount

    private let locate: @Sendable () -> URL?
    /// Nil if the file is not open, or cannot be used.
    private let file = Mutex<CookieFile?>(nil)

    /// - Parameter locate: Finds the file, whenever it is to be read or written: a program without cookies
    ///   does not wait for that (0.4 ms of W16).
    init(locating locate: @escaping @Sendable () -> URL?) { self.locate = locate }

    /// Opens the file and reads it.
    ///
    /// - Returns: Its rows, and whether it was broken and has been replaced by an empty one; nil if it cannot
    ///   be used.
    func open(now: Date) -> (rows: [CookieRow], wasBroken: Bool)? {
        guard let url = locate() else { return nil }
        // A missing file is created when there is a cookie to write.
        guard FileManager.default.fileExists(atPath: url.path) else { return ([], false) }
        var failure: DatabaseError?
        let found = file.withLock { file -> (rows: [CookieRow], wasBroken: Bool)? in
            do throws(DatabaseError) {
                let opened = try CookieFile(url)
                let contents = opened.read(now: now)
                file = opened
                return contents
            } catch {
                failure = error
                return nil
            }
        }
        if let failure { CookieFile.tell(failure, url) }
        return found
    }

    /// Writes rows, in one transaction.
    ///
    /// - Parameter all: All rows of the store, asked for if the file is broken and has to be replaced.
    /// - Returns: False if the rows could not be written.
    func write(_ rows: [CookieRow], orAll all: @Sendable () -> [CookieRow]) -> Bool {
        guard let url = locate() else { return true }
        let failure = file.withLock { file -> DatabaseError? in
            do throws(DatabaseError) {
                try Self.write(rows, orAll: all, to: &file, url)
                return nil
            } catch {
                return error
            }
        }
        guard let failure else { return true }
        CookieFile.tell(failure, url)
        return false
    }

    private static func write(
        _ rows: [CookieRow], orAll all: @Sendable () -> [CookieRow], to file: inout CookieFile?, _ url: URL
    ) throws(DatabaseError) {
        // A missing file need not be created to remove rows.
        if file == nil, rows.allSatisfy({ $0.cookie == nil && $0.replaced == nil }) { return }
        if file == nil { file = try CookieFile(url) }
        guard let file else { return }
        do throws(DatabaseError) {
            try file.write(rows)
        } catch {
            guard error.isCorruption else { throw error }
            // The cookies in memory are written to the new file.
            try file.makeAnew()
            try file.write(all())
        }
    }

    func close() { file.withLock { $0 = nil } }
}

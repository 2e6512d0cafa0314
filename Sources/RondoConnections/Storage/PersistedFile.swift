internal import RondoCore

/// A file with a value that outlives the process. It is always written as a whole, and only its user may read
/// it. `PersistedValue` decides when it is written.
struct PersistedFile: Sendable {
    let url: URL
    let onFailure: (@Sendable (any Error) -> Void)?
    /// Whether the value in memory is newer than the file, because the last write failed.
    var isBehind = false

    init(_ url: URL, onFailure: (@Sendable (any Error) -> Void)?) {
        self.url = url
        self.onFailure = onFailure
    }

    /// The reason why a file could not be written, and the handler to call.
    struct Failure {
        let error: CocoaError
        private let onFailure: (@Sendable (any Error) -> Void)?
        private let isFirst: Bool

        fileprivate init(_ file: PersistedFile, _ cause: NSError) {
            let code: CocoaError.Code =
                switch Int32(cause.domain == NSPOSIXErrorDomain ? cause.code : 0) {
                case EACCES, EPERM: .fileWriteNoPermission
                case ENOSPC, EDQUOT: .fileWriteOutOfSpace
                case EROFS: .fileWriteVolumeReadOnly
                default: .fileWriteUnknown
                }
            let sentence =
                "\(file.url.path) could not be written (\(cause.localizedDescription)): its contents are "
                + "kept in memory until the program ends"
            error = CocoaError(
                code,
                userInfo: [
                    NSLocalizedDescriptionKey: sentence, NSFilePathErrorKey: file.url.path,
                    NSURLErrorKey: file.url, NSUnderlyingErrorKey: cause,
                ])
            onFailure = file.onFailure
            isFirst = !file.isBehind
        }

        /// Reports the failure to the program's handler or, if there is none, to the log; once, until a write
        /// has succeeded again. Call it with no lock held.
        func tell() {
            guard isFirst else { return }
            guard let onFailure else { return Log.connections.warning("\(error.localizedDescription)") }
            onFailure(error)
        }
    }

    /// Writes `value` to a new file, which replaces the old one when it is complete.
    ///
    /// - Returns: Nil if the file now has the value.
    mutating func write(_ value: some Encodable) -> Failure? {
        do {
            try put(JSONEncoder().encode(value))
            isBehind = false
            return nil
        } catch {
            defer { isBehind = true }
            guard let error = error as? SystemError else { return Failure(self, error as NSError) }
            let cause = NSError(
                domain: NSPOSIXErrorDomain, code: Int(error.code),
                userInfo: [NSLocalizedDescriptionKey: error.description])
            return Failure(self, cause)
        }
    }

    private func put(_ data: Data) throws(SystemError) {
        let path = url.path + "." + UUID().uuidString
        // Never readable for others.
        let descriptor = try systemCall("open") { open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
        do throws(SystemError) {
            do throws(SystemError) {
                try Self.write(data, to: descriptor)
                // Without this the new name may be on the disk before the contents, if the machine loses
                // power.
                _ = try systemCall("fsync") { fsync(descriptor) }
            } catch {
                close(descriptor)
                throw error
            }
            // `close` reports the last errors of writing. It is not retried: the descriptor is released
            // either way.
            guard close(descriptor) == 0 else { throw SystemError("close", code: errno) }
            _ = try systemCall("rename") { rename(path, url.path) }
        } catch {
            unlink(path)
            throw error
        }
    }

    private static func write(_ data: Data, to descriptor: Int32) throws(SystemError) {
        var rest = data
        while !rest.isEmpty {
            let count = try systemCall("write") {
                rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            }
            rest = rest.dropFirst(count)
        }
    }

    // MARK: Left-over files

    /// Removes the temporary files that killed processes have left beside the file at `url`.
    static func removeRemains(of url: URL, now: Date = Date()) {
        let folder = url.deletingLastPathComponent()
        let prefix = url.lastPathComponent + "."
        // A folder that cannot be read is one in which this process cannot remove anything either.
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else { return }
        for name in names
        where name.hasPrefix(prefix) && UUID(uuidString: String(name.dropFirst(prefix.count))) != nil {
            PrivateFile.removeRemains(folder.appendingPathComponent(name), now: now)
        }
    }
}

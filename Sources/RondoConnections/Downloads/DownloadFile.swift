package import RondoCore
internal import RondoMutex

/// A file that is being written. It is closed when this object is released, and also removed if it is
/// temporary.
package final class DownloadFile: Sendable {
    /// The beginning of temporary files' names; a UUID follows.
    private static let temporaryPrefix = "rondo-download-"

    /// Whether a temporary file may have this name.
    static func isTemporaryName(_ name: String) -> Bool {
        name.hasPrefix(temporaryPrefix)
            && UUID(uuidString: String(name.dropFirst(temporaryPrefix.count))) != nil
    }

    let path: String
    private let descriptor: Mutex<Int32>
    /// Whether the file is removed when this object is released.
    private let isTemporary: Mutex<Bool>

    /// The maximum number that is appended to a name before giving up.
    private static let maximumNumber = 10_000

    init(path: String, allowOverwrite: Bool) throws(SystemError) {
        isTemporary = Mutex(false)
        let mode: mode_t = 0o666
        if allowOverwrite {
            descriptor = Mutex(try Self.openRegular(path, O_WRONLY | O_CREAT | O_TRUNC, mode))
            self.path = path
            return
        }
        var candidate = path
        var number = 1
        while true {
            do throws(SystemError) {
                let opened = try systemCall("open") {
                    open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                }
                descriptor = Mutex(opened)
                self.path = candidate
                return
            } catch {
                guard error.code == EEXIST, number < Self.maximumNumber else { throw error }
                number += 1
                candidate = Self.numbered(path, number)
            }
        }
    }

    /// Opens a partial file: everything after `offset` is cut off and will be written anew.
    init(continuing path: String, at offset: Int64) throws(SystemError) {
        isTemporary = Mutex(false)
        let opened = try Self.openRegular(path, O_WRONLY, 0)
        descriptor = Mutex(opened)
        self.path = path
        try Self.cut(opened, at: offset)
    }

    /// Opens a temporary file that was kept, which thereby becomes temporary again. Everything after `offset`
    /// is cut off and will be written anew.
    ///
    /// - Throws: If the file is gone, is shorter than `offset`, belongs to another user, or is used by
    ///   another download.
    init(reopening name: String, at offset: Int64) throws(SystemError) {
        guard Self.isTemporaryName(name) else { throw SystemError("open", code: EINVAL) }
        isTemporary = Mutex(false)
        path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        let opened = try Self.openRegular(path, O_WRONLY | O_NOFOLLOW, 0)
        descriptor = Mutex(opened)
        // The lock lasts until the file is closed; two downloads would overwrite each other.
        _ = try systemCall("flock") { flock(opened, LOCK_EX | LOCK_NB) }
        var status = stat()
        // Read under the lock: `KeptDownloads` may have removed the file since it was opened.
        guard fstat(opened, &status) == 0, status.st_nlink > 0, status.st_uid == geteuid(),
            status.st_size >= offset
        else { throw SystemError("open", code: EINVAL) }
        try Self.cut(opened, at: offset)
        isTemporary.withLock { $0 = true }
        KeptDownloads.shared.forget(path)
    }

    private static func cut(_ descriptor: Int32, at offset: Int64) throws(SystemError) {
        _ = try systemCall("ftruncate") { ftruncate(descriptor, off_t(offset)) }
        _ = try systemCall("lseek") { lseek(descriptor, off_t(offset), SEEK_SET) }
    }

    /// Opens a regular file, which may not exist yet. Other types are refused: a FIFO may block, and has
    /// neither a length nor positions to continue at; a terminal or another device may block a write for
    /// ever.
    private static func openRegular(_ path: String, _ flags: Int32, _ mode: mode_t) throws(SystemError)
        -> Int32
    {
        // Non-blocking: a FIFO without a reader fails with ENXIO at once.
        let opened = try systemCall("open") { open(path, flags | O_CLOEXEC | O_NONBLOCK, mode) }
        var status = stat()
        if fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG || isNull(status) { return opened }
        _ = Foundation.close(opened)
        throw SystemError("open", code: EINVAL)
    }

    /// Whether the file is `/dev/null`, which accepts everything at once.
    private static func isNull(_ status: stat) -> Bool {
        var null = stat()
        return status.st_mode & S_IFMT == S_IFCHR && stat("/dev/null", &null) == 0
            && status.st_rdev == null.st_rdev
    }

    /// Creates a file in the temporary directory, which is removed when this object is released.
    init() throws(SystemError) {
        KeptDownloads.removeOldOnce()
        isTemporary = Mutex(true)
        let path = FileManager.default.temporaryDirectory
            .appendingPathComponent("\(Self.temporaryPrefix)\(UUID().uuidString)").path
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        let opened = try systemCall("open") { open(path, flags, mode_t(0o600)) }
        descriptor = Mutex(opened)
        self.path = path
        // For `KeptDownloads`. Where a file cannot be locked, none is removed either.
        _ = flock(opened, LOCK_EX | LOCK_NB)
    }

    deinit {
        try? close()  // an error has no receiver any more
        if isTemporary.withLock({ $0 }) { unlink(path) }
    }

    /// Closes a temporary file, and makes it outlive this object.
    ///
    /// - Parameters:
    ///   - isAsked: Whether the program has asked for it. Otherwise the file is one of `kept`, which may
    ///     remove it.
    ///   - kept: The files that were kept before.
    /// - Returns: Its name, for `init(reopening:at:)`; nil if it could not be closed without an error, and is
    ///   not kept.
    func keep(isAsked: Bool, among kept: KeptDownloads = .shared) -> String? {
        do throws(SystemError) {
            try close()
        } catch {
            return nil
        }
        isTemporary.withLock { $0 = false }
        if !isAsked { kept.add(path) }
        return URL(fileURLWithPath: path).lastPathComponent
    }

    package var url: URL { URL(fileURLWithPath: path) }

    /// "picture-2.png" from "picture.png" and 2.
    private static func numbered(_ path: String, _ number: Int) -> String {
        let url = URL(fileURLWithPath: path)
        let suffix = url.pathExtension.isEmpty ? "" : ".\(url.pathExtension)"
        let stem = url.deletingPathExtension().lastPathComponent
        return url.deletingLastPathComponent().appendingPathComponent("\(stem)-\(number)\(suffix)").path
    }

    func write(_ data: Data) throws(SystemError) {
        // Under the lock: a cancel on another thread closes the descriptor.
        let failure = descriptor.withLock { descriptor -> SystemError? in
            guard descriptor >= 0 else { return nil }
            return data.withUnsafeBytes { Self.write($0, to: descriptor) }
        }
        if let failure { throw failure }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> SystemError? {
        var rest = bytes[...]
        while !rest.isEmpty {
            do throws(SystemError) {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                rest = rest.dropFirst(
                    try systemCall("write") { Foundation.write(descriptor, piece.baseAddress, piece.count) })
            } catch {
                return error
            }
        }
        return nil
    }

    func close() throws(SystemError) {
        let descriptor = descriptor.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
        // Not retried on EINTR: Linux has already released the descriptor.
        if descriptor >= 0, Foundation.close(descriptor) == -1 { throw SystemError("close", code: errno) }
    }

    /// Closes the file, and removes it if it is a regular one: a device is not the download's to remove.
    package func discard(deleting: Bool = true) {
        var status = stat()
        if deleting, stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG { unlink(path) }
        try? close()  // a download that is given up need not be whole
    }
}

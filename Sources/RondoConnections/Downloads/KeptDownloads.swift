internal import RondoCore
internal import RondoMutex

/// The partial files that failed downloads of this process have left for resume data (rule US-64).
///
/// Most programs never use that data, and would fill the disk: beyond the limits the oldest files are
/// removed. A download whose file is gone begins anew. Files that the program has asked for since they were
/// last opened, by a cancel that produces resume data, are not among these.
///
/// A download locks its file (`flock`) while it writes it, so that no file in use is removed, of this process
/// or of another.
final class KeptDownloads: Sendable {
    static let shared = KeptDownloads()

    /// The most files that are left.
    static let maximumCount = 64
    /// The most bytes in these files, 4 GiB. The newest file is left even if it alone has more.
    static let maximumBytes: Int64 = 4 << 30
    /// The seconds after which a file that was not written any more is removed: ten days, as systemd-tmpfiles
    /// does in /tmp.
    static let maximumAge: TimeInterval = 10 * 24 * 60 * 60

    private struct File {
        let path: String
        let bytes: Int64
    }

    private let maximumCount: Int
    private let maximumBytes: Int64
    /// The oldest first.
    private let files = Mutex<[File]>([])

    init(
        maximumCount: Int = KeptDownloads.maximumCount, maximumBytes: Int64 = KeptDownloads.maximumBytes
    ) {
        self.maximumCount = maximumCount
        self.maximumBytes = maximumBytes
    }

    /// Adds a file that was closed, and removes the oldest ones beyond the limits.
    func add(_ path: String) {
        var status = stat()
        let file = File(path: path, bytes: stat(path, &status) == 0 ? Int64(status.st_size) : 0)
        let surplus = files.withLock { files -> [File] in
            files.append(file)
            var bytes = files.reduce(0) { $0 + $1.bytes }
            var count = 0
            while files.count - count > maximumCount || bytes > maximumBytes && files.count - count > 1 {
                bytes -= files[count].bytes
                count += 1
            }
            defer { files.removeFirst(count) }
            return Array(files.prefix(count))
        }
        for file in surplus { Self.removeUnused(file.path) }
    }

    /// Call it when a download has opened the file to continue it.
    func forget(_ path: String) { files.withLock { $0.removeAll { $0.path == path } } }

    // MARK: - Files of earlier processes

    private static let removal: Void = {
        let folder = FileManager.default.temporaryDirectory.path
        // A folder with many files would hold up the run loop. If there is no thread, another process removes
        // them.
        try? SystemThread.start(name: "rondo.downloads") { removeOld(in: folder) }
    }()

    /// Removes old files of this user on a thread of its own, the first time in a process.
    static func removeOldOnce() { removal }

    /// Removes the files of this user in `folder` that are older than `maximumAge` and not in use.
    static func removeOld(in folder: String, now: Date = Date()) {
        let limit = now.addingTimeInterval(-maximumAge).timeIntervalSince1970
        // In a folder that cannot be read there is nothing to remove.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where DownloadFile.isTemporaryName(name) {
            removeUnused("\(folder)/\(name)", writtenBefore: Int(limit))
        }
    }

    /// Removes a regular file of this user, unless a download uses it.
    ///
    /// - Parameter time: Seconds since 1970. A file that was written later stays.
    private static func removeUnused(_ path: String, writtenBefore time: Int = .max) {
        // Non-blocking, because it may be a FIFO.
        let opened = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard opened >= 0 else { return }
        defer { close(opened) }
        var status = stat()
        guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
            status.st_mtim.tv_sec < time, flock(opened, LOCK_EX | LOCK_NB) == 0
        else { return }
        unlink(path)
    }
}

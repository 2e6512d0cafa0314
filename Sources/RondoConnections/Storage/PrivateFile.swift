internal import RondoCore

/// Makes files and folders that only their user may read and write: cookies and responses are private.
enum PrivateFile {
    static let fileMode: mode_t = 0o600
    static let folderMode: mode_t = 0o700

    /// Creates a folder, and missing ones above it, for the user only.
    ///
    /// An existing folder is not changed, because the user may have chosen to share it.
    ///
    /// - Returns: Whether it was missing; then it is empty.
    @discardableResult
    static func makeFolder(_ url: URL) throws(SystemError) -> Bool {
        let path = url.path
        if mkdir(path, folderMode) == 0 { return true }
        switch errno {
        case EEXIST:
            // If it is no folder, or cannot be used, making a file in it reports that.
            return false
        case ENOENT where url.pathComponents.count > 1:
            try makeFolder(url.deletingLastPathComponent())
            // Another process may have made it meanwhile.
            if mkdir(path, folderMode) == 0 { return true }
            guard errno == EEXIST else { throw SystemError("mkdir", code: errno) }
            return false
        case let code:
            throw SystemError("mkdir", code: code)
        }
    }

    /// Creates an empty file, or makes an existing one private.
    ///
    /// An existing file is not opened: closing it would release the locks that this process holds on it
    /// through other descriptors, and SQLite holds some.
    static func make(_ url: URL) throws(SystemError) {
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        do throws(SystemError) {
            let descriptor = try systemCall("open") { open(url.path, flags, fileMode) }
            close(descriptor)
        } catch {
            guard error.code == EEXIST else { throw error }
            var status = stat()
            _ = try systemCall("stat") { stat(url.path, &status) }
            guard status.st_mode & S_IFMT == S_IFREG else { throw SystemError("open", code: EINVAL) }
            guard status.st_mode & 0o077 != 0 else { return }
            _ = try systemCall("chmod") { chmod(url.path, fileMode) }
        }
    }

    /// Takes other users' permissions from a file, if it exists and is the user's own.
    static func hide(_ url: URL) {
        var status = stat()
        guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_mode & 0o077 != 0
        else { return }
        chmod(url.path, fileMode)
    }

    /// Takes other users' permissions from a folder, if it is the user's own.
    static func hideFolder(_ url: URL) {
        var status = stat()
        guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
            status.st_mode & 0o077 != 0
        else { return }
        chmod(url.path, folderMode)
    }

    /// The age in seconds from which a temporary file for a replacement counts as left by a killed process.
    static let remainsAge: Double = 60

    /// Removes a temporary file for a replacement, if it is the user's own and old enough.
    static func removeRemains(_ url: URL, now: Date) {
        var status = stat()
        guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(),
            Double(status.st_mtim.tv_sec) + remainsAge < now.timeIntervalSince1970
        else { return }
        unlink(url.path)
    }
}

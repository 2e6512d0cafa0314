internal import RondoCore

/// Opens files of this machine that loads read.
enum LocalFile {
    /// Opens the file for reading; the caller closes it.
    ///
    /// - Returns: Its descriptor, and how many bytes it has.
    static func open(_ path: String) throws(LoadFailure) -> (descriptor: Int32, length: Int) {
        let fail = { (code: URLError.Code, sentence: String, cause: SystemError) -> LoadFailure in
            .file(code, sentence: "The file \(path) \(sentence)", cause)
        }
        // `O_NONBLOCK`: opening a FIFO would otherwise wait for its writer.
        let descriptor: Int32
        do throws(SystemError) {
            descriptor = try systemCall("open") { Foundation.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: throw fail(.fileDoesNotExist, "does not exist", error)
            case EACCES, EPERM: throw fail(.noPermissionsToReadFile, "may not be read", error)
            default: throw fail(.cannotOpenFile, "could not be opened", error)
            }
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let error = SystemError("fstat", code: errno)
            _ = Foundation.close(descriptor)
            throw fail(.cannotOpenFile, "could not be opened", error)
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            return (descriptor, Int(status.st_size))
        case S_IFDIR:
            _ = Foundation.close(descriptor)
            throw fail(.fileIsDirectory, "is a directory", SystemError("open", code: EISDIR))
        default:
            _ = Foundation.close(descriptor)
            throw fail(.cannotOpenFile, "is no regular file", SystemError("open", code: EINVAL))
        }
    }
}

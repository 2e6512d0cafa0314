import Rondo

/// The descriptors 0, 1 and 2, any of which may be closed when the command is started (`rondo … >&-`).
enum StandardDescriptors {
    /// Opens a replacement for each closed descriptor, on which reading or writing fails as before. Otherwise
    /// the next file or connection would get that number, and receive text that is meant for a person.
    static func fill() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // `open` returns the lowest free number, which is this one. The file is opened in the useless
            // direction.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}

import Rondo

/// The descriptors 0, 1 and 2, one of which may be closed where the command is started (`rondo … >&-`).
enum StandardDescriptors {
    /// Puts something in the place of those that are closed, on which reading and writing fail as before. Or else the
    /// next file or connection that is opened would have the number, and get text that is meant for a person.
    static func fill() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 && errno == EBADF {
            // The lowest number that is free is this one. The direction is the one that is of no use.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}

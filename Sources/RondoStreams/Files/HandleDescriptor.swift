internal import RondoCore

/// A stream's own descriptor for the file that a `FileHandle` has open: the program may close the handle and
/// reuse its number for another file, which the stream must not read (rule FH-15).
///
/// The stream shares the open file with the handle, and its flags (`O_NONBLOCK`) with every process that has
/// the file open, so this class changes no flag. A read does not block, whatever the flags are, with one
/// exception: a file that the kernel cannot read without blocking, if another reader has taken the bytes
/// between `poll` and `read`.
final class HandleDescriptor: Sendable {
    enum Kind {
        /// A pipe or a FIFO.
        case pipe
        /// A connected socket.
        case socket
        /// A terminal, a device, or another file that can be polled.
        case device
        /// A file, a folder or a disk: always ready for the kernel, and read on a thread of its own (rule
        /// FH-12).
        case file
    }

    /// The result of an attempt to read.
    enum Outcome: Equatable {
        /// The number of bytes that were read, or can be.
        case bytes(Int)
        case nothing
        case end
        /// The value of `errno`.
        case failed(Int32)

        var hasBytes: Bool { if case .bytes = self { true } else { false } }
    }

    let number: Int32
    let kind: Kind

    /// - Throws: The reason why `handle` cannot be read as a stream of bytes.
    init(_ handle: FileHandle) throws(SystemError) {
        let original = handle.fileDescriptor
        // The null device has no descriptor.
        if original < 0, handle === FileHandle.nullDevice {
            number = try systemCall("open") { open("/dev/null", O_RDONLY | O_CLOEXEC) }
        } else {
            number = try systemCall("fcntl") { [original] in fcntl(original, F_DUPFD_CLOEXEC, 0) }
        }
        var status = stat()
        let found = fstat(number, &status)
        switch status.st_mode & S_IFMT {
        case S_IFREG, S_IFDIR, S_IFBLK: kind = .file
        case S_IFSOCK: kind = .socket
        case S_IFIFO: kind = .pipe
        default: kind = .device
        }
        if found < 0 { throw SystemError("fstat", code: errno) }
        try check()
    }

    deinit { close(number) }

    private func check() throws(SystemError) {
        if fcntl(number, F_GETFL) & O_ACCMODE == O_WRONLY { throw SystemError("read", code: EBADF) }
        guard kind == .socket else { return }
        var type: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &length)
        // Datagrams are no stream: an empty datagram would look like the end.
        if type == Int32(SOCK_DGRAM.rawValue) { throw SystemError("read", code: EPROTOTYPE) }
        // A listening or unconnected socket would never become readable.
        if case .failed(let code) = peek() { throw SystemError("recv", code: code) }
    }

    // MARK: - Looking and reading

    private func events() -> Int32 { SocketCalls.poll(number, for: POLLIN) }

    /// Checks what a read would find, and reads nothing. Not for files.
    func look() -> Outcome {
        if kind == .socket { return peek() }
        let events = events()
        if events & POLLIN != 0 { return .bytes(1) }
        if events & POLLHUP != 0 { return .end }
        return events & (POLLERR | POLLNVAL) != 0 ? .failed(EIO) : .nothing
    }

    private func peek() -> Outcome {
        var byte: UInt8 = 0
        let flags = Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)
        return switch SocketCalls.retrying({ recv(number, &byte, 1, flags) }) {
        case .bytes(0): .end
        case .bytes(let count): .bytes(count)
        case .wouldBlock: .nothing
        case .failed(let code): .failed(code)
        }
    }

    /// Reads the bytes that are there. Not for files.
    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        guard let start = buffer.baseAddress else { return .nothing }
        let found = readAvailable(number, into: start, count: buffer.count)
        switch Int32(clamping: -found) {
        case ..<0: return .bytes(found)
        // A FIFO that no writer has opened yet returns 0 bytes too.
        case 0: return kind == .pipe && events() & POLLHUP == 0 ? .nothing : .end
        case EAGAIN, EINTR: return .nothing
        // A terminal whose other side is gone.
        case EIO where kind == .device && events() & POLLHUP != 0: return .end
        case let code: return .failed(code)
        }
    }
}

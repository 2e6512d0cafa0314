package import RondoCore

/// The error of a socket operation: the kernel's error code, and the operation.
package struct SocketError: Error, Hashable, Sendable {
    /// The operation; the raw value is its text in a sentence.
    package enum Operation: String, Sendable {
        case open = "open a socket"
        case bind = "bind a socket"
        case connect = "connect"
        case read
        case write
        case inspect = "look at a socket"
        case watch = "watch a connection"
        case listen
        case accept = "accept a connection"
    }

    /// The value of `errno`, or of `SO_ERROR`.
    package let code: Int32
    package let operation: Operation
    /// The address of the operation, if it had one.
    package let address: SocketAddress?

    package init(code: Int32, operation: Operation, address: SocketAddress? = nil) {
        self.code = code
        self.operation = operation
        self.address = address
    }

    /// The same error in Foundation's form, for `underlyingError` and `streamError`.
    package var posixError: NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(code), userInfo: [NSLocalizedDescriptionKey: description])
    }
}

extension SocketError: CustomStringConvertible {
    /// "could not connect to 127.0.0.1:81: Connection refused (ECONNREFUSED)".
    package var description: String {
        let target =
            address.map { address in
                switch operation {
                case .connect: " to \(address)"
                case .listen, .accept: " on \(address)"
                case .open, .bind, .read, .write, .inspect, .watch: " (\(address))"
                }
            } ?? ""
        return "could not \(operation.rawValue)\(target): \(Self.sentence(of: code))"
    }

    /// The text of an errno with its name: "Connection refused (ECONNREFUSED)".
    package static func sentence(of code: Int32) -> String {
        "\(String(cString: strerror(code))) (\(name(of: code)))"
    }

    /// The name of an errno that a socket operation can return. glibc's `strerrorname_np` is defined under
    /// `_GNU_SOURCE` only, so Swift does not see it.
    static func name(of code: Int32) -> String {
        switch code {
        case EACCES: "EACCES"
        case EADDRINUSE: "EADDRINUSE"
        case EADDRNOTAVAIL: "EADDRNOTAVAIL"
        case EAFNOSUPPORT: "EAFNOSUPPORT"
        case EAGAIN: "EAGAIN"
        case EALREADY: "EALREADY"
        case EBADF: "EBADF"
        case ECONNABORTED: "ECONNABORTED"
        case ECONNREFUSED: "ECONNREFUSED"
        case ECONNRESET: "ECONNRESET"
        case EHOSTDOWN: "EHOSTDOWN"
        case EHOSTUNREACH: "EHOSTUNREACH"
        case EINPROGRESS: "EINPROGRESS"
        case EINTR: "EINTR"
        case EINVAL: "EINVAL"
        case EIO: "EIO"
        case EISCONN: "EISCONN"
        case EMFILE: "EMFILE"
        case ENAMETOOLONG: "ENAMETOOLONG"
        case ENETDOWN: "ENETDOWN"
        case ENETRESET: "ENETRESET"
        case ENETUNREACH: "ENETUNREACH"
        case ENFILE: "ENFILE"
        case ENOBUFS: "ENOBUFS"
        case ENOENT: "ENOENT"
        case ENOMEM: "ENOMEM"
        case ENOSPC: "ENOSPC"
        case ENOTCONN: "ENOTCONN"
        case ENOTSOCK: "ENOTSOCK"
        case EPERM: "EPERM"
        case EPIPE: "EPIPE"
        case EPROTO: "EPROTO"
        case ETIMEDOUT: "ETIMEDOUT"
        default: "errno \(code)"
        }
    }
}

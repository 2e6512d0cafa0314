internal import CRondoEv

/// The failure of a system call: its error number, and the name of the call.
package struct SystemError: Error, Equatable, Hashable, Sendable, CustomStringConvertible {
    /// The value of `errno`.
    package let code: Int32
    /// The call that failed, by its name in C.
    package let call: String

    package init(_ call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    package var description: String {
        "\(call): \(String(cString: strerror(code))) (errno \(code))"
    }
}

// A program sees this error as an `NSError`, through `Source.error`.
extension SystemError: CustomNSError, LocalizedError {
    package static var errorDomain: String { NSPOSIXErrorDomain }
    package var errorCode: Int { Int(code) }
    package var errorDescription: String? { description }
}

/// Runs a system call that returns -1 and sets `errno` on failure. A call interrupted by a signal is made
/// again, here and nowhere else.
package func systemCall<Result: FixedWidthInteger>(
    _ name: StaticString, _ body: () -> Result
) throws(SystemError) -> Result {
    while true {
        let result = body()
        if result != -1 { return result }
        let code = errno
        if code != EINTR { throw SystemError("\(name)", code: code) }
    }
}

/// Accepts a connection from a listening socket. The descriptor is non-blocking, and other programs do not
/// inherit it.
///
/// - Parameters:
///   - address: Where the peer's `sockaddr` is put.
///   - size: The number of bytes there; afterwards that of the address.
/// - Returns: The descriptor, or the negative value of `errno`.
package func acceptConnection(
    on listener: Int32, _ address: UnsafeMutableRawPointer? = nil, _ size: UnsafeMutablePointer<UInt32>? = nil
) -> Int32 {
    rondo_accept(listener, address, size)
}

/// Reads at most `count` of the bytes that have arrived, and never waits, whatever the flags of the
/// descriptor.
///
/// - Returns: The number of bytes, 0 at the end, or the negative value of `errno`: `-EAGAIN` if no bytes have
///   arrived.
package func readAvailable(_ descriptor: Int32, into buffer: UnsafeMutableRawPointer, count: Int) -> Int {
    rondo_read_what_is_there(descriptor, buffer, count)
}

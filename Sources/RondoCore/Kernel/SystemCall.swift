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

// As `Source.error` a program sees it as an `NSError`.
extension SystemError: CustomNSError, LocalizedError {
    package static var errorDomain: String { NSPOSIXErrorDomain }
    package var errorCode: Int { Int(code) }
    package var errorDescription: String? { description }
}

/// Runs a system call that answers -1 and sets `errno` on failure; a call interrupted by a signal is
/// made again, here and nowhere else.
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

/// How many bytes of `object` may be read: those that were allocated for it, with its header.
package func allocationSize(of object: AnyObject) -> Int {
    withExtendedLifetime(object) { rondo_allocation_size(Unmanaged.passUnretained(object).toOpaque()) }
}

/// Takes a connection from a listening socket, non-blocking and not inherited by other programs.
///
/// - Returns: The descriptor, or the negative value of `errno`.
package func acceptConnection(on listener: Int32) -> Int32 { rondo_accept(listener) }

/// Reads at most `count` bytes that are there, and does not wait for any, whatever the flags of the descriptor.
///
/// - Returns: The number of bytes, 0 at the end, or the negative value of `errno`, `-EAGAIN` where none are there.
package func readWhatIsThere(_ descriptor: Int32, into buffer: UnsafeMutableRawPointer, count: Int) -> Int {
    rondo_read_what_is_there(descriptor, buffer, count)
}

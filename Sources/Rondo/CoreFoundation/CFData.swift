// Core Foundation's functions for bytes, used with its sockets and hosts: thin, no logic.

public func CFDataCreate(
    _ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex
) -> CFData! {
    NSData(bytes: bytes, length: length)
}

/// Data of the given bytes without a copy, if it may free them. Bytes that the caller keeps are copied, so
/// that the caller may free them at once.
///
/// - Parameter bytesDeallocator: `kCFAllocatorNull` if the caller frees the bytes; otherwise the data frees
///   them, by `free`.
public func CFDataCreateWithBytesNoCopy(
    _ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex,
    _ bytesDeallocator: CFAllocator!
) -> CFData! {
    guard let bytes, length >= 0 else { return nil }
    guard bytesDeallocator !== kCFAllocatorNull else { return NSData(bytes: bytes, length: length) }
    return NSData(bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), length: length, freeWhenDone: true)
}

public func CFDataGetLength(_ theData: CFData!) -> CFIndex { theData.length }

public func CFDataGetBytePtr(_ theData: CFData!) -> UnsafePointer<UInt8>! {
    theData.bytes.assumingMemoryBound(to: UInt8.self)
}

extension Data {
    /// A copy. (`Data(referencing:)` and `as Data` copy byte by byte on Linux: a megabyte takes 60 ms, and
    /// this 0.06.)
    init(copying data: NSData) { self.init(bytes: data.bytes, count: data.length) }
}

/// C's Boolean, as functions of Core Foundation give it by a pointer.
public struct DarwinBoolean: ExpressibleByBooleanLiteral, Hashable, Sendable {
    public var boolValue: Bool

    public init(_ value: Bool) { boolValue = value }

    public init(booleanLiteral value: Bool) { self.init(value) }
}

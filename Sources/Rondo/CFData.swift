// Core Foundation's names for bytes, strings and arrays, as its sockets and hosts hand them over: thin, no logic.

/// `data as CFData` and `bytes as Data` convert. Take a callback's by
/// `Unmanaged<CFData>.fromOpaque(data).takeUnretainedValue()`.
public typealias CFData = NSData
/// A value: Swift's own, which `as CFString` leaves as it is.
public typealias CFString = String
public typealias CFArray = NSArray

public func CFDataCreate(
    _ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex
) -> CFData! {
    NSData(bytes: bytes, length: length)
}

public func CFDataGetLength(_ theData: CFData!) -> CFIndex { theData.length }

public func CFDataGetBytePtr(_ theData: CFData!) -> UnsafePointer<UInt8>! {
    theData.bytes.assumingMemoryBound(to: UInt8.self)
}

/// C's Boolean, as functions of Core Foundation give it by a pointer.
public struct DarwinBoolean: ExpressibleByBooleanLiteral, Hashable, Sendable {
    public var boolValue: Bool

    public init(_ value: Bool) { boolValue = value }

    public init(booleanLiteral value: Bool) { self.init(value) }
}

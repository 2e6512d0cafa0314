// Core Foundation's functions for bytes, as its sockets and hosts hand them over: thin, no logic.

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

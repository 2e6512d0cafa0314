// Core Foundation's types, and the constants that belong to them. On Apple's systems each is bridged to a
// Foundation class at no cost; here each is that class, so `"example.com" as CFString` and `text as String`
// convert.

public typealias CFTypeRef = AnyObject
public typealias CFString = NSString
public typealias CFNumber = NSNumber
public typealias CFBoolean = NSNumber
public typealias CFNull = NSNull
public typealias CFError = NSError
public typealias CFData = NSData
public typealias CFURL = NSURL
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary
/// What the `hash` function of a context returns.
public typealias CFHashCode = UInt

public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
public let kCFNull: CFNull! = NSNull()

/// The name of a stream's property: Foundation's own type, whose `rawValue` is a String.
public typealias CFStreamPropertyKey = Foundation.Stream.PropertyKey

extension Foundation.Stream.PropertyKey {
    /// The key of this name, for `CFStreamPropertyKey(rawValue: kCFStreamPropertySSLSettings)`.
    public init(rawValue: CFString) { self.init(rawValue: rawValue as String) }

    /// The key of this name.
    public init(_ rawValue: CFString) { self.init(rawValue: rawValue as String) }
}

extension Foundation.RunLoop.Mode {
    /// The mode of this name, for `CFRunLoopMode(rawValue: name as CFString)`.
    public init(rawValue: CFString) { self.init(rawValue: rawValue as String) }

    /// The mode of this name.
    public init(_ rawValue: CFString) { self.init(rawValue: rawValue as String) }
}

// Makes `kCFStreamPropertySSLSettings as Stream.PropertyKey` compile, which is how code for Apple's systems
// writes a key: there the constants are a `CFString`, as here, and Foundation bridges its keys, which it does
// not do on Linux.
//
// The protocol is a hook of the standard library with an underscored name, and there is no other way: `as`
// calls no function, so no overload can make this conversion, and constants that were keys themselves could
// not be written `as String` or passed as `CFString`.
extension Foundation.Stream.PropertyKey: @retroactive _ObjectiveCBridgeable {}

// An extension of an internal protocol meets the requirements, so that clients do not see them as methods of
// the key.
extension Foundation.Stream.PropertyKey: TextKey {}

/// A key whose raw value is a string, which bridges it to `CFString`.
protocol TextKey {
    init(rawValue: String)
    var rawValue: String { get }
}

extension TextKey {
    public func _bridgeToObjectiveC() -> CFString { rawValue as NSString }

    public static func _forceBridgeFromObjectiveC(_ source: CFString, result: inout Self?) {
        result = Self(rawValue: source as String)
    }

    public static func _conditionallyBridgeFromObjectiveC(_ source: CFString, result: inout Self?) -> Bool {
        result = Self(rawValue: source as String)
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: CFString?) -> Self {
        Self(rawValue: (source ?? "") as String)
    }
}

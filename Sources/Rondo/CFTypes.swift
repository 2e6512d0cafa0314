// Core Foundation's types, and the constants that stand beside them. On Apple's systems each is bridged to a class of
// Foundation without a cost; here each is that class, so `"example.com" as CFString` and `text as String` convert.

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

public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
public let kCFNull: CFNull! = NSNull()

/// The name of a property of a stream: Foundation's own type, whose `rawValue` is a String.
public typealias CFStreamPropertyKey = Foundation.Stream.PropertyKey

extension Foundation.Stream.PropertyKey {
    /// The key of this name, as `CFStreamPropertyKey(rawValue: kCFStreamPropertySSLSettings)` says it.
    public init(rawValue: CFString) { self.init(rawValue: rawValue as String) }

    /// The key of this name.
    public init(_ rawValue: CFString) { self.init(rawValue: rawValue as String) }
}

extension Foundation.RunLoop.Mode {
    /// The mode of this name, as `CFRunLoopMode(rawValue: name as CFString)` says it.
    public init(rawValue: CFString) { self.init(rawValue: rawValue as String) }

    /// The mode of this name.
    public init(_ rawValue: CFString) { self.init(rawValue: rawValue as String) }
}

// `kCFStreamPropertySSLSettings as Stream.PropertyKey` is a conversion that the compiler makes where a type is bridged to
// a class. Foundation declares none for its keys on Linux.
extension Foundation.Stream.PropertyKey: @retroactive _ObjectiveCBridgeable {
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

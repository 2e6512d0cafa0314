internal import FoundationNetworking
public import RondoCore

// On Linux a thrown `URLError` is not caught by `catch let error as NSError`, by which code for Apple's
// systems catches it, nor the reverse. The runtime asks this conformance, and then both are.
extension URLError: @retroactive _ObjectiveCBridgeable {}

// The protocol's requirements are met by an extension of a protocol that is not public, so that clients see none of them as
// a method of `URLError`.
extension URLError: NSErrorBacked {}

/// An error that stands for an `NSError` and has one.
protocol NSErrorBacked {
    var _nsError: NSError { get }
    init(_nsError: NSError)
}

extension NSErrorBacked {
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout Self?) {
        result = Self(_nsError: source)
    }

    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSError, result: inout Self?
    ) -> Bool {
        guard source.domain == NSURLErrorDomain else { return false }
        result = Self(_nsError: source)
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> Self {
        Self(_nsError: source ?? NSError(domain: NSURLErrorDomain, code: NSURLErrorUnknown))
    }
}

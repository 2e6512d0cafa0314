internal import FoundationNetworking
public import RondoCore

// On Linux `catch let error as NSError`, which code for Apple's systems uses, does not catch a thrown
// `URLError`, and `as URLError` does not catch an `NSError`. The runtime uses this conformance to make both
// work.
extension URLError: @retroactive _ObjectiveCBridgeable {}

// An extension of an internal protocol meets the requirements, so that clients do not see them as methods of
// `URLError`.
extension URLError: NSErrorBacked {}

/// An error that wraps an `NSError`.
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

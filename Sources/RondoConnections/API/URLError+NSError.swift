internal import FoundationNetworking
public import RondoCore

// On Linux a thrown `URLError` is not caught by `catch let error as NSError`, by which code for Apple's
// systems catches it, nor the reverse. The runtime asks this conformance, and then both are.
extension URLError: @retroactive _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout URLError?) {
        result = URLError(_nsError: source)
    }

    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSError, result: inout URLError?
    ) -> Bool {
        guard source.domain == NSURLErrorDomain else { return false }
        result = URLError(_nsError: source)
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> URLError {
        URLError(_nsError: source ?? NSError(domain: NSURLErrorDomain, code: NSURLErrorUnknown))
    }
}

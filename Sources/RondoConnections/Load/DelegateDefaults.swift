internal import RondoCore

internal import struct Synchronization.Atomic

/// Which methods of a class of delegates are defaults that change nothing, as far as that is known.
///
/// Whether a class has a method of its own can only be told by calling it (rule UC-74), and stays as it is from
/// then on: so a default is called once for each class, and the calls after it are left out.
package final class DelegateDefaults: Sendable {
    package enum Method: UInt8 {
        case shouldUseCredentialStorage = 1
        case willCacheResponse = 2
        case didCollectMetrics = 4
        case willSendRequestForChallenge = 8
        case canAuthenticate = 16
    }

    package init() {}

    private let defaults = Atomic<UInt8>(0)
    private let bodyStreamMethodIsKnown = Atomic(false)

    package func contains(_ method: Method) -> Bool {
        defaults.load(ordering: .relaxed) & method.rawValue != 0
    }

    package func insert(_ method: Method) { defaults.bitwiseOr(method.rawValue, ordering: .relaxed) }

    /// The class has no method that is asked about TLS: the settings answer such questions
    /// (rules UC-44 and UC-45).
    var leavesTLSToSettings: Bool { contains(.willSendRequestForChallenge) && contains(.canAuthenticate) }

    /// The class was found to have `connection(_:needNewBodyStream:)`.
    var hasBodyStreamMethod: Bool { bodyStreamMethodIsKnown.load(ordering: .relaxed) }

    package func noteBodyStreamMethod() { bodyStreamMethodIsKnown.store(true, ordering: .relaxed) }
}

extension DelegateDefaults? {
    /// Whether a call of `method` would come to its default, as is known from an earlier one. Traces tell of every
    /// call, so that all are made while there is a listener.
    func spares(_ method: DelegateDefaults.Method) -> Bool {
        self?.contains(method) ?? false && !RunLoop.isTraced
    }
}

internal import RondoCore

internal import struct Synchronization.Atomic

/// The delegate methods that a class does not implement itself, as far as that is known: calls of them have
/// no effect.
///
/// Only a call shows whether a class has a method of its own or the protocol's default (rule UC-74), and that
/// never changes: so a default is called once for each class, and later calls are left out.
package final class DelegateDefaults: Sendable {
    package enum Method: UInt8 {
        case shouldUseCredentialStorage = 1
        case willCacheResponse = 2
        case didCollectMetrics = 4
        case willSendRequestForChallenge = 8
        case canAuthenticate = 16
    }

    package init() {}

    /// For a delegate of Rondo's own that has no method for questions about TLS: even its first load may
    /// resume an earlier TLS session.
    static func leavingTLSToSettings() -> DelegateDefaults {
        let defaults = DelegateDefaults()
        defaults.insert(.willSendRequestForChallenge)
        defaults.insert(.canAuthenticate)
        return defaults
    }

    private let defaults = Atomic<UInt8>(0)
    private let bodyStreamMethodIsKnown = Atomic(false)

    package func contains(_ method: Method) -> Bool {
        defaults.load(ordering: .relaxed) & method.rawValue != 0
    }

    package func insert(_ method: Method) { defaults.bitwiseOr(method.rawValue, ordering: .relaxed) }

    /// Whether the class is known to have no method for questions about TLS, so that the settings decide
    /// (rules UC-44 and UC-45).
    var leavesTLSToSettings: Bool { contains(.willSendRequestForChallenge) && contains(.canAuthenticate) }

    /// Whether the class is known to have `connection(_:needNewBodyStream:)`.
    var hasBodyStreamMethod: Bool { bodyStreamMethodIsKnown.load(ordering: .relaxed) }

    package func noteBodyStreamMethod() { bodyStreamMethodIsKnown.store(true, ordering: .relaxed) }
}

extension DelegateDefaults? {
    /// Whether a call of `method` would only reach its default, as an earlier call has shown. While a trace
    /// is recorded all calls are made, since the trace lists them.
    func usesDefault(of method: DelegateDefaults.Method) -> Bool {
        self?.contains(method) ?? false && !RunLoop.isTraced
    }
}

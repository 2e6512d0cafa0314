internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A method of the delegates that a class may leave out.
enum SessionMethod: UInt8 {
    case sessionChallenge, sessionChallengeAsync
    case created, waiting, redirect, redirectAsync, taskChallenge, taskChallengeAsync, bodyStream
    case bodyStreamAsync, sent, informational, metrics, completed
    case response, responseAsync, becameDownload, data, willCache, willCacheAsync
    case wrote, resumed
    case opened, closed
    case readClosed, writeClosed, captured, becameStream

    fileprivate var bit: UInt64 { 1 << UInt64(rawValue) }
}

/// Which methods of a class of delegates are defaults, as far as that is known.
///
/// Whether a class has a method of its own can only be told by calling it, and stays as it is from then on: so a default is
/// called once for each class, and the calls after it are left out (rule US-5).
final class SessionDelegateClass: Sendable {
    private static let known = Mutex<[ObjectIdentifier: SessionDelegateClass]>([:])

    static func of(_ type: Any.Type) -> SessionDelegateClass {
        known.withLock { known in
            if let found = known[ObjectIdentifier(type)] { return found }
            let new = SessionDelegateClass()
            known[ObjectIdentifier(type)] = new
            return new
        }
    }

    private let defaults: Atomic<UInt64>
    /// What the loads know of a task whose calls all go to a delegate of this class.
    let ofTasks = DelegateDefaults()
    /// The same of a task with a completion handler, which is told less.
    let ofHandlers = DelegateDefaults()

    private init() {
        defaults = Atomic(0)
        ofTasks.insert(.shouldUseCredentialStorage)
        ofHandlers.insert(.shouldUseCredentialStorage)
        ofHandlers.insert(.willCacheResponse)
    }

    /// It is known to have no such method.
    func lacks(_ method: SessionMethod) -> Bool { defaults.load(ordering: .relaxed) & method.bit != 0 }

    func lacks(_ methods: SessionMethod...) -> Bool { methods.allSatisfy { lacks($0) } }

    /// The default of `method` was called.
    func noteDefault(_ method: SessionMethod) { noteLacking(method) }

    /// It does not conform to the protocol of these methods.
    func noteLacking(_ methods: SessionMethod...) {
        let bits = methods.reduce(0) { $0 | $1.bit }
        let (old, new) = defaults.bitwiseOr(bits, ordering: .relaxed)
        if old != new { share(new) }
    }

    /// Tells loads what they spare by it.
    private func share(_ defaults: UInt64) {
        for loads in [ofTasks, ofHandlers] {
            if lacks(.metrics) { loads.insert(.didCollectMetrics) }
            if lacks(.willCache, .willCacheAsync) { loads.insert(.willCacheResponse) }
            if lacks(.sessionChallenge, .sessionChallengeAsync, .taskChallenge, .taskChallengeAsync) {
                loads.insert(.willSendRequestForChallenge)
                loads.insert(.canAuthenticate)
            }
        }
    }
}

extension DelegateDefaults {
    /// Of a task whose completion handler alone is told of it.
    static let ofNoDelegate = DelegateDefaults(lacking: [])

    /// Of several delegates, each of which may have what the others lack.
    convenience init(lacking classes: [SessionDelegateClass]) {
        self.init()
        insert(.shouldUseCredentialStorage)
        let all = { (methods: SessionMethod...) in
            classes.allSatisfy { kind in methods.allSatisfy { kind.lacks($0) } }
        }
        if all(.metrics) { insert(.didCollectMetrics) }
        if all(.willCache, .willCacheAsync) { insert(.willCacheResponse) }
        if all(.sessionChallenge, .sessionChallengeAsync, .taskChallenge, .taskChallengeAsync) {
            insert(.willSendRequestForChallenge)
            insert(.canAuthenticate)
        }
    }
}

internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A delegate method that a class may leave unimplemented.
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

/// The methods that a delegate class is known to leave to the default implementations.
///
/// Only a call can tell whether a class implements a method, and the result never changes. So a default is
/// called once for each class; later calls of it are skipped (rule US-5).
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
    /// The methods that a load may skip, for tasks with this class as their only delegate.
    let ofTasks = DelegateDefaults()
    /// The methods that a load may skip for tasks with a completion handler, which call fewer methods.
    let ofHandlers = DelegateDefaults()

    private init() {
        defaults = Atomic(0)
        ofTasks.insert(.shouldUseCredentialStorage)
        ofHandlers.insert(.shouldUseCredentialStorage)
        ofHandlers.insert(.willCacheResponse)
    }

    /// True if the class is known not to implement the method.
    func lacks(_ method: SessionMethod) -> Bool { defaults.load(ordering: .relaxed) & method.bit != 0 }

    func lacks(_ methods: SessionMethod...) -> Bool { methods.allSatisfy { lacks($0) } }

    /// The default implementation of `method` was called.
    func noteDefault(_ method: SessionMethod) { noteLacking(method) }

    /// The class does not conform to the protocol of these methods.
    func noteLacking(_ methods: SessionMethod...) {
        let bits = methods.reduce(0) { $0 | $1.bit }
        let (old, new) = defaults.bitwiseOr(bits, ordering: .relaxed)
        guard old != new else { return }
        // The loads can skip more calls.
        for loads in [ofTasks, ofHandlers] { loads.insertCalls(lackedBy: [self]) }
    }
}

extension DelegateDefaults {
    /// For a task without delegates.
    static let ofNoDelegate = DelegateDefaults(lacking: [])

    /// For a task with several delegates.
    convenience init(lacking classes: [SessionDelegateClass]) {
        self.init()
        insert(.shouldUseCredentialStorage)
        insertCalls(lackedBy: classes)
    }

    /// Inserts the calls whose methods none of the classes implements.
    fileprivate func insertCalls(lackedBy classes: [SessionDelegateClass]) {
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

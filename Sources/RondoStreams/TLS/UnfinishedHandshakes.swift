// The handshakes of a listener's connections that are not over yet, and how many and how long they may be.
//
// A peer that connects and says nothing, or a byte an hour, costs it nothing and this side some 50 KB of OpenSSL's
// memory. Beyond the limit the *oldest* one gives way. The other way, to accept no peer until one has finished,
// would hand the server to the attacker: as many silent peers as the limit allows would keep all others out until
// their time is over, and come again. To crowd an honest client out as it is done here an attacker has to open as
// many connections as the limit within the client's handshake, a few round trips, and again for each client; what
// remains of it is a flood, which the kernel and the network have to deal with.

internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The TLS handshakes of a listener's connections that are not over, at most as many as a limit allows.
///
/// The listener and the channels of its connections share it. Any thread.
final class UnfinishedHandshakes: Sendable {
    /// How many there may be at a time.
    let limit: Int
    /// How long each may take, in seconds; nil: as long as the peer likes.
    let seconds: Double?

    /// A handshake that is not over. Its channel looks at it in a pass.
    final class Entry: Sendable {
        fileprivate let number: Int
        private let whenGivenUp: @Sendable () -> Void
        private let gaveWay = Atomic(false)

        fileprivate init(number: Int, whenGivenUp: @escaping @Sendable () -> Void) {
            self.number = number
            self.whenGivenUp = whenGivenUp
        }

        /// Whether it has to end because newer ones have come.
        var hasGivenWay: Bool { gaveWay.load(ordering: .relaxed) }

        fileprivate func giveWay() {
            gaveWay.store(true, ordering: .relaxed)
            whenGivenUp()
        }
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        /// The numbers are in the order of arrival; none below this one is left.
        var oldest = 0
        var next = 0
    }

    private let state = Mutex(State())

    init(limit: Int, seconds: Double?) {
        self.limit = max(1, limit)
        self.seconds = seconds
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// One begins; beyond the limit the oldest one gives way.
    ///
    /// - Parameter whenGivenUp: Called when this one gives way, on any thread and with no lock held.
    func enter(whenGivenUp: @escaping @Sendable () -> Void) -> Entry {
        let (entry, old) = state.withLock { [limit] state -> (Entry, Entry?) in
            let entry = Entry(number: state.next, whenGivenUp: whenGivenUp)
            state.entries[state.next] = entry
            state.next += 1
            guard state.entries.count > limit else { return (entry, nil) }
            while true {
                defer { state.oldest += 1 }
                if let old = state.entries.removeValue(forKey: state.oldest) { return (entry, old) }
            }
        }
        old?.giveWay()
        return entry
    }

    /// It is over, in whatever way.
    func leave(_ entry: Entry) {
        _ = state.withLock { $0.entries.removeValue(forKey: entry.number) }
    }
}

// The unfinished handshakes of a listener's connections, with limits for their number and duration.
//
// A peer that connects and sends nothing, or a byte an hour, costs this side some 50 KB of OpenSSL's memory
// and the peer nothing. Beyond the limit the *oldest* handshake is dropped. The alternative, to accept no
// peer until a handshake has finished, would hand the server to an attacker: as many silent peers as the
// limit allows would keep all others out until they time out, and then return. To crowd out an honest client
// here, an attacker must open as many connections as the limit within the client's handshake, a few round
// trips, and again for each client; that is a flood, which the kernel and the network have to deal with.

internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The unfinished TLS handshakes of a listener's connections, up to a limit.
///
/// The listener and the channels of its connections share it. Any thread may use it.
final class UnfinishedHandshakes: Sendable {
    /// The most handshakes that may be unfinished at a time.
    let limit: Int
    /// The most seconds that each handshake may take; nil: no limit.
    let seconds: Double?

    /// One unfinished handshake. Its channel checks `isEvicted` in its passes.
    final class Entry: Sendable {
        fileprivate let number: Int
        private let onEviction: @Sendable () -> Void
        private let wasEvicted = Atomic(false)

        fileprivate init(number: Int, onEviction: @escaping @Sendable () -> Void) {
            self.number = number
            self.onEviction = onEviction
        }

        /// Whether the handshake must end because newer ones have taken its place.
        var isEvicted: Bool { wasEvicted.load(ordering: .relaxed) }

        fileprivate func evict() {
            wasEvicted.store(true, ordering: .relaxed)
            onEviction()
        }
    }

    private struct State {
        var entries: [Int: Entry] = [:]
        /// Numbers increase in the order of arrival; no entry has a smaller one than `oldest`.
        var oldest = 0
        var next = 0
    }

    private let state = Mutex(State())

    init(limit: Int, seconds: Double?) {
        self.limit = max(1, limit)
        self.seconds = seconds
    }

    var count: Int { state.withLock { $0.entries.count } }

    /// Registers a handshake; beyond the limit the oldest one is evicted.
    ///
    /// - Parameter onEviction: Called when this handshake is evicted, on any thread and with no lock held.
    func enter(onEviction: @escaping @Sendable () -> Void) -> Entry {
        let (entry, old) = state.withLock { [limit] state -> (Entry, Entry?) in
            let entry = Entry(number: state.next, onEviction: onEviction)
            state.entries[state.next] = entry
            state.next += 1
            guard state.entries.count > limit else { return (entry, nil) }
            while true {
                defer { state.oldest += 1 }
                if let old = state.entries.removeValue(forKey: state.oldest) { return (entry, old) }
            }
        }
        old?.evict()
        return entry
    }

    /// Removes a handshake that has ended, in whatever way.
    func leave(_ entry: Entry) {
        _ = state.withLock { $0.entries.removeValue(forKey: entry.number) }
    }
}

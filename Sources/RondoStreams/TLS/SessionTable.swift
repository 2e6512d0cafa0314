/// What a `SessionTable` has to know of a session.
package protocol ResumableSession {
    /// Whether it may be used once only.
    var isForOneUse: Bool { get }
}

/// A table of the sessions that are kept, by host. It decides only, and knows no OpenSSL.
package struct SessionTable<Key: Hashable, Session: ResumableSession> {
    package let hostLimit: Int
    package let sessionLimit: Int
    private var sessions: [Key: [Session]] = [:]
    /// Keys in the order of their last use.
    private var order: [Key] = []

    /// - Parameters:
    ///   - hostLimit: Keys that are kept; beyond, the one that was used longest ago goes.
    ///   - sessionLimit: Sessions kept for one key; beyond, the oldest goes.
    package init(hostLimit: Int, sessionLimit: Int) {
        self.hostLimit = hostLimit
        self.sessionLimit = sessionLimit
    }

    package var count: Int { sessions.values.reduce(0) { $0 + $1.count } }

    /// Keeps a session.
    ///
    /// - Returns: Those that are kept no longer.
    package mutating func add(_ session: Session, for key: Key) -> [Session] {
        touch(key)
        var kept = sessions[key] ?? []
        kept.append(session)
        var dropped: [Session] = []
        if kept.count > sessionLimit { dropped.append(kept.removeFirst()) }
        sessions[key] = kept
        if order.count > hostLimit {
            dropped += sessions.removeValue(forKey: order.removeFirst()) ?? []
        }
        return dropped
    }

    /// The newest session for this key that can be used; one for one use is taken out.
    package mutating func take(for key: Key, where isUsable: (Session) -> Bool) -> Session? {
        guard var kept = sessions[key] else { return nil }
        touch(key)
        kept.removeAll { !isUsable($0) }
        let found = kept.last
        if found?.isForOneUse ?? false { kept.removeLast() }
        sessions[key] = kept.isEmpty ? nil : kept
        if kept.isEmpty { order.removeAll { $0 == key } }
        return found
    }

    private mutating func touch(_ key: Key) {
        order.removeAll { $0 == key }
        order.append(key)
    }
}

/// A session as `SessionTable` sees it.
package protocol ResumableSession {
    /// Whether it may be used once only.
    var isForOneUse: Bool { get }
}

/// A table of sessions by key, with limits. It only decides which to keep and knows nothing of OpenSSL.
package struct SessionTable<Key: Hashable, Session: ResumableSession> {
    package let hostLimit: Int
    package let sessionLimit: Int
    private var sessions: [Key: [Session]] = [:]
    /// Keys in the order of their last use.
    private var order: [Key] = []

    /// - Parameters:
    ///   - hostLimit: The most keys that are kept; beyond it the least recently used key is dropped.
    ///   - sessionLimit: The most sessions kept for one key; beyond it the oldest is dropped.
    package init(hostLimit: Int, sessionLimit: Int) {
        self.hostLimit = hostLimit
        self.sessionLimit = sessionLimit
    }

    package var count: Int { sessions.values.reduce(0) { $0 + $1.count } }

    /// Keeps a session.
    ///
    /// - Returns: The sessions that were dropped to make room.
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

    /// Returns the newest usable session for `key`; removes it if it may be used once only.
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

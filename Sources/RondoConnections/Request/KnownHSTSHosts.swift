internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The hosts that have asked to be contacted over TLS only ("Known HSTS Hosts", RFC 6797 §8.2). Programs see
/// them as `URLConnection.TransportSecurity`.
enum KnownHSTSHosts {
    private static let persisted = PersistedValue(StrictTransportSecurity(), label: "rondo.hsts")
    /// Whether any host is known: if none is, requests skip the lock.
    private static let isInUse = Atomic(false)

    /// Remembers hosts in `file` from now on, and those that are already in it. With nil, hosts are
    /// remembered only until the program ends.
    static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)?
    ) throws {
        try persisted.keep(in: file, otherwise: nil, onFailure: onFailure)
        noteUse()
    }

    /// Forgets all hosts; the file, too, has been written when this returns.
    static func forgetAll() {
        let (_, failure) = persisted.replace(with: StrictTransportSecurity())
        noteUse()
        failure?.tell()
    }

    /// Writes everything that waits to be written, and returns when that is done.
    static func flush() { persisted.flush() }

    /// Whether no host is known.
    static var isEmpty: Bool { !isInUse.load(ordering: .relaxed) }

    /// Whether connections to `host` must use TLS.
    static func covers(_ host: String) -> Bool {
        if isEmpty { return false }
        return persisted.read { $0.covers(host, now: Date()) }
    }

    /// - Parameter own: Hosts that are known besides.
    /// - Returns: The https URL in place of `url`; nil if it is used as it is.
    static func upgraded(_ url: URL, _ own: OwnHSTSHosts? = nil) -> URL? {
        if let own, let upgraded = own.upgraded(url) { return upgraded }
        if isEmpty { return nil }
        return persisted.read { $0.upgraded(url, now: Date()) }
    }

    /// Takes the fields of a response from `url`, over TLS with a verified certificate.
    ///
    /// - Parameter own: The list that notes the host; nil for that of the process.
    static func receive(_ fields: HeaderFields, from url: URL, for own: OwnHSTSHosts? = nil) {
        guard let host = url.host, let value = fields.values(for: "Strict-Transport-Security").first else {
            return
        }
        if let own { return own.receive(value, from: host) }
        persisted.change { hosts in
            let isWorthWriting = hosts.received(value, from: host, now: Date())
            isInUse.store(!hosts.isEmpty, ordering: .relaxed)
            return isWorthWriting
        }
    }

    private static func noteUse() {
        // Under the lock, so that the flag and the value agree.
        persisted.read { isInUse.store(!$0.isEmpty, ordering: .relaxed) }
    }
}

/// The hosts that have asked the sessions of one ephemeral configuration to be contacted over TLS only: they
/// are known to these alone, and in memory (rule US-8).
package final class OwnHSTSHosts: Sendable {
    private let hosts = Mutex(StrictTransportSecurity())

    package init() {}

    /// Whether no host is known.
    var isEmpty: Bool { hosts.withLock { $0.isEmpty } }

    fileprivate func upgraded(_ url: URL) -> URL? { hosts.withLock { $0.upgraded(url, now: Date()) } }

    fileprivate func receive(_ value: String, from host: String) {
        hosts.withLock { _ = $0.received(value, from: host, now: Date()) }
    }
}

extension StrictTransportSecurity: Persistable {
    static var emptyForm: Listing { Listing() }

    func add(to form: inout Listing, from position: Int) -> Int? { list(from: position, into: &form) }
}

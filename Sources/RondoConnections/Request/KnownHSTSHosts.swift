internal import RondoCore
internal import RondoHTTP

internal import struct Synchronization.Atomic

/// The hosts that are spoken to by TLS only, since they have asked for it ("Known HSTS Hosts", RFC 6797 §8.2); programs
/// see them as `URLConnection.TransportSecurity`.
enum KnownHSTSHosts {
    private static let kept = KeptValue(StrictTransportSecurity(), label: "rondo.hsts")
    /// Whether any host is known: spares requests the lock where none has asked.
    private static let isInUse = Atomic(false)

    /// Remembers hosts in `file` from here on, and those that it holds already; nil: only until the program ends.
    static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)?
    ) throws {
        try kept.keep(in: file, otherwise: nil, onFailure: onFailure)
        noteUse()
    }

    /// Forgets all hosts, also in the file, which is written when this returns.
    static func forgetAll() {
        let (_, failure) = kept.replace(with: StrictTransportSecurity())
        noteUse()
        failure?.tell()
    }

    /// Writes what waits to be written, and returns when it is.
    static func flush() { kept.flush() }

    /// No host is known.
    static var isEmpty: Bool { !isInUse.load(ordering: .relaxed) }

    /// Whether `host` may be spoken to by TLS only.
    static func covers(_ host: String) -> Bool {
        if isEmpty { return false }
        return kept.read { $0.covers(host, now: Date()) }
    }

    static func upgraded(_ url: URL) -> URL? {
        if isEmpty { return nil }
        return kept.read { $0.upgraded(url, now: Date()) }
    }

    /// A response from `url`, by TLS whose certificate was verified.
    static func receive(_ fields: HeaderFields, from url: URL) {
        guard let host = url.host, let value = fields.values(for: "Strict-Transport-Security").first else {
            return
        }
        kept.change { hosts in
            let isWorthWriting = hosts.received(value, from: host, now: Date())
            isInUse.store(!hosts.isEmpty, ordering: .relaxed)
            return isWorthWriting
        }
    }

    private static func noteUse() {
        // Under the lock, so that the two agree.
        kept.read { isInUse.store(!$0.isEmpty, ordering: .relaxed) }
    }
}

extension StrictTransportSecurity: Keepable {
    static var emptyForm: Listing { Listing() }

    func add(to form: inout Listing, from position: Int) -> Int? { list(from: position, into: &form) }
}

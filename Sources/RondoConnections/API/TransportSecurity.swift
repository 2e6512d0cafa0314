public import RondoCore
internal import RondoHTTP
internal import Synchronization

/// The hosts that have asked to be spoken to by TLS only (HSTS, RFC 6797), as the connections of this process
/// remember them.
///
/// A response by https says so in Strict-Transport-Security; a request by http to such a host then becomes one
/// by https before anything is sent, which the delegate is shown as a canonical request (rule UC-29). Any
/// thread may call everything here.
public enum TransportSecurity {
    private static let kept = KeptValue(StrictTransportSecurity(), label: "rondo.hsts")
    /// Whether there is anything to look up: what costs nothing where no host has asked.
    private static let isInUse = Atomic(false)

    /// Remembers hosts in `file` from here on, and those that it holds already; nil: only until the program
    /// ends, as at first.
    ///
    /// What servers say is written within half a second, by a thread of Rondo's own, and when the program ends in an
    /// orderly way. Of 10,000 hosts those that expire first are forgotten for further ones.
    ///
    /// - Parameter onFailure: Told when `file` could not be written, as for
    ///   `PermanentCredentials.keep(in:onFailure:)`; what was to be written is remembered until the program ends.
    /// - Throws: What Foundation says if the file is there and cannot be read.
    public static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
    ) throws {
        try kept.keep(in: file, otherwise: nil, onFailure: onFailure)
        noteUse()
    }

    /// Forgets all hosts, also in the file, which is written when this returns.
    public static func forgetAll() {
        let (_, failure) = kept.replace(with: StrictTransportSecurity())
        noteUse()
        failure?.tell()
    }

    /// Writes what waits to be written, and returns when it is.
    static func flush() { kept.flush() }

    /// Whether `host` may be spoken to by TLS only.
    public static func covers(_ host: String) -> Bool {
        guard isInUse.load(ordering: .relaxed) else { return false }
        return kept.read { $0.covers(host, now: Date()) }
    }

    // MARK: For the connections

    static func upgraded(_ url: URL) -> URL? {
        guard isInUse.load(ordering: .relaxed) else { return nil }
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
        // Under the lock, so that it agrees with what is there.
        kept.read { isInUse.store(!$0.isEmpty, ordering: .relaxed) }
    }
}

extension StrictTransportSecurity: Keepable {
    static var emptyForm: Listing { Listing() }

    func add(to form: inout Listing, from position: Int) -> Int? { list(from: position, into: &form) }
}

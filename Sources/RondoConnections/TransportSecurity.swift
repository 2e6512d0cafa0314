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
    private struct State {
        var store = StrictTransportSecurity()
        var file: KeptFile?
    }

    private static let state = Mutex(State())
    /// Whether there is anything to look up: what costs nothing where no host has asked.
    private static let isInUse = Atomic(false)

    /// Remembers hosts in `file` from here on, and those that it holds already; nil: only until the program
    /// ends, as at first.
    ///
    /// - Parameter onFailure: Told when `file` could not be written, as for
    ///   `PermanentCredentials.keep(in:onFailure:)`; what was to be written is remembered until the program ends.
    /// - Throws: What Foundation says if the file is there and cannot be read.
    public static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
    ) throws {
        var stored: StrictTransportSecurity?
        if let file, FileManager.default.fileExists(atPath: file.path) {
            stored = try JSONDecoder().decode(StrictTransportSecurity.self, from: Data(contentsOf: file))
        }
        state.withLock { state in
            state.file = file.map { KeptFile($0, onFailure: onFailure) }
            if let stored { state.store = stored }
            isInUse.store(!state.store.isEmpty, ordering: .relaxed)
        }
    }

    /// Forgets all hosts, also in the file.
    public static func forgetAll() {
        change { $0 = StrictTransportSecurity() }
    }

    /// Whether `host` may be spoken to by TLS only.
    public static func covers(_ host: String) -> Bool {
        guard isInUse.load(ordering: .relaxed) else { return false }
        return state.withLock { $0.store.covers(host, now: Date()) }
    }

    // MARK: For the connections

    static func upgraded(_ url: URL) -> URL? {
        guard isInUse.load(ordering: .relaxed) else { return nil }
        return state.withLock { $0.store.upgraded(url, now: Date()) }
    }

    /// A response from `url`, by TLS whose certificate was verified.
    static func receive(_ fields: HeaderFields, from url: URL) {
        guard let host = url.host, let value = fields.values(for: "Strict-Transport-Security").first else {
            return
        }
        change { $0.received(value, from: host, now: Date()) }
    }

    private static func change(_ body: (inout StrictTransportSecurity) -> Void) {
        let failure = state.withLock { state -> KeptFile.Failure? in
            let before = state.store
            body(&state.store)
            isInUse.store(!state.store.isEmpty, ordering: .relaxed)
            guard let file = state.file, file.isBehind || state.store != before else { return nil }
            // What cannot be written is kept in memory all the same: a load does not fail by it.
            return state.file?.write(state.store)
        }
        failure?.tell()
    }
}

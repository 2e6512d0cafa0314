internal import FoundationNetworking
public import RondoCore
internal import Synchronization

/// Credentials of permanent persistence, kept beyond the process (rule UC-51).
///
/// Linux has no key chain that every program could rely on, and Foundation's storage forgets all when the process
/// ends. So where they are kept is for the program to say: in one file, readable for its user alone, passwords as
/// they are. Until it has said so, such a credential lives as long as the process. A file that cannot be written is
/// told of, see `keep(in:onFailure:)`. Any thread may call everything here.
public enum PermanentCredentials {
    /// A credential and the protection space that it is the default of.
    struct Entry: Codable, Equatable {
        let host: String
        let port: Int
        let scheme: String?
        let proxyType: String?
        let realm: String?
        let method: String
        let user: String
        let password: String

        init?(_ credential: URLCredential, for space: URLProtectionSpace) {
            guard let user = credential.user, let password = credential.password else { return nil }
            host = space.host.lowercased()
            port = space.port
            scheme = space.protocol
            proxyType = space.proxyType
            realm = space.realm
            method = space.authenticationMethod
            self.user = user
            self.password = password
        }

        var space: URLProtectionSpace {
            if let proxyType {
                return URLProtectionSpace(
                    proxyHost: host, port: port, type: proxyType, realm: realm, authenticationMethod: method)
            }
            return URLProtectionSpace(
                host: host, port: port, protocol: scheme, realm: realm, authenticationMethod: method)
        }

        var credential: URLCredential {
            URLCredential(user: user, password: password, persistence: .permanent)
        }

        func isOfSpace(of other: Entry) -> Bool {
            host == other.host && port == other.port && scheme == other.scheme
                && proxyType == other.proxyType && realm == other.realm && method == other.method
        }
    }

    private struct State {
        var file: KeptFile?
        var entries: [Entry] = []
    }

    private static let state = Mutex(State())

    /// Keeps credentials in `file` from here on, and puts those that it holds into the shared credential storage;
    /// nil: only until the program ends, as at first.
    ///
    /// What a delegate gives for a challenge is kept once the server has accepted it. What a program puts into
    /// `URLCredentialStorage` by itself is not.
    ///
    /// - Parameter onFailure: Told when `file` could not be written: a `CocoaError` with the path under
    ///   `NSFilePathErrorKey` and the errno under `NSUnderlyingErrorKey`. No load fails by it: the credential is
    ///   remembered until the program ends, and written with the next one that is kept. It is told once, until
    ///   writing succeeds again, on the thread that serves the connection, with no lock held. Nil: a warning in
    ///   the log, `rondo.connections`.
    /// - Throws: What Foundation says if the file is there and cannot be read.
    public static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
    ) throws {
        var entries: [Entry] = []
        if let file, FileManager.default.fileExists(atPath: file.path) {
            entries = try JSONDecoder().decode([Entry].self, from: Data(contentsOf: file))
        }
        let kept = file.map { KeptFile($0, onFailure: onFailure) }
        state.withLock { [entries] in $0 = State(file: kept, entries: entries) }
        for entry in entries { StoredCredentials.store(entry.credential, for: entry.space) }
    }

    /// Forgets all of them: in the file, and in the shared credential storage.
    ///
    /// - Throws: A `CocoaError`, as `keep(in:onFailure:)` has it, if the file could not be written: it still holds
    ///   them.
    public static func forgetAll() throws {
        let (forgotten, failure) = state.withLock { state in
            let forgotten = state.entries
            state.entries = []
            return (forgotten, state.file?.write(state.entries))
        }
        for entry in forgotten { StoredCredentials.remove(entry.credential, for: entry.space) }
        if let failure { throw failure.error }
    }

    // MARK: For the connections

    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence == .permanent, let entry = Entry(credential, for: space) else { return }
        let failure = state.withLock { state -> KeptFile.Failure? in
            guard let file = state.file, file.isBehind || !state.entries.contains(entry) else { return nil }
            state.entries.removeAll { $0.isOfSpace(of: entry) }
            state.entries.append(entry)
            return state.file?.write(state.entries)
        }
        failure?.tell()
    }
}

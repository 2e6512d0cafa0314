internal import FoundationNetworking
public import RondoCore
internal import Synchronization

/// Credentials of permanent persistence, kept beyond the process (rule UC-51).
///
/// Linux has no key chain that every program could rely on, and Foundation's storage forgets all when the process
/// ends. So where they are kept is for the program to say: in one file, readable for its user alone, passwords as
/// they are. Until it has said so, such a credential lives as long as the process. Any thread may call everything
/// here.
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
        var file: URL?
        var entries: [Entry] = []
    }

    private static let state = Mutex(State())

    /// Keeps credentials in `file` from here on, and puts those that it holds into the shared credential storage;
    /// nil: only until the program ends, as at first.
    ///
    /// What a delegate gives for a challenge is kept once the server has accepted it. What a program puts into
    /// `URLCredentialStorage` by itself is not.
    ///
    /// - Throws: What Foundation says if the file is there and cannot be read.
    public static func keep(in file: URL?) throws {
        var entries: [Entry] = []
        if let file, FileManager.default.fileExists(atPath: file.path) {
            entries = try JSONDecoder().decode([Entry].self, from: Data(contentsOf: file))
        }
        state.withLock { [entries] in $0 = State(file: file, entries: entries) }
        for entry in entries { StoredCredentials.store(entry.credential, for: entry.space) }
    }

    /// Forgets all of them: in the file, and in the shared credential storage.
    public static func forgetAll() {
        let forgotten = state.withLock { state in
            defer {
                state.entries = []
                write(state)
            }
            return state.entries
        }
        for entry in forgotten { StoredCredentials.remove(entry.credential, for: entry.space) }
    }

    // MARK: For the connections

    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence == .permanent, let entry = Entry(credential, for: space) else { return }
        state.withLock { state in
            guard state.file != nil, !state.entries.contains(entry) else { return }
            state.entries.removeAll { $0.isOfSpace(of: entry) }
            state.entries.append(entry)
            write(state)
        }
    }

    /// What cannot be written is kept in memory all the same: a load does not fail by it.
    private static func write(_ state: State) {
        guard let file = state.file, let data = try? JSONEncoder().encode(state.entries) else { return }
        // In place of the file once it is whole, and never readable for others.
        let path = file.path + ".\(UUID().uuidString)"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        if (try? handle.write(contentsOf: data)) == nil || rename(path, file.path) != 0 { unlink(path) }
    }
}

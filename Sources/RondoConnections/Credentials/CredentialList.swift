internal import FoundationNetworking
internal import RondoCore

/// A list of the credentials that loads have stored, each the default of its protection space, the oldest
/// first. One list has those of this process, another those that outlive it.
///
/// A server chooses its realms itself, and a delegate may answer each of them: therefore the list has limits,
/// within which a linear search is fast enough.
struct CredentialList: Persistable {
    /// A credential and the protection space whose default it is.
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
            scheme = space.scheme
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
            port == other.port && host == other.host && scheme == other.scheme
                && proxyType == other.proxyType && realm == other.realm && method == other.method
        }

        func isOfServer(of other: Entry) -> Bool {
            port == other.port && host == other.host && proxyType == other.proxyType
        }

        func isSameUser(as other: Entry) -> Bool { user == other.user && isOfSpace(of: other) }

        var size: Int {
            host.utf8.count + user.utf8.count + password.utf8.count + (realm?.utf8.count ?? 0)
        }
    }

    static let maximumCount = 1_000
    /// The maximum of credentials for one server or proxy: a server that names ever new realms does not
    /// displace those of others.
    static let maximumPerServer = 32
    /// The maximum size of an entry, in bytes of all its texts.
    static let maximumEntrySize = 8_192

    private(set) var entries: [Entry] = []

    init() {}

    /// Adds an entry in place of the one of the same space.
    ///
    /// - Returns: Whether the list has changed.
    mutating func add(_ entry: Entry) -> Bool {
        guard entry.size <= Self.maximumEntrySize, !entries.contains(entry) else { return false }
        _ = insert(entry)
        return true
    }

    /// Adds an entry of an allowed size as the newest, in place of the one of the same space.
    ///
    /// - Returns: The entry of another space that was removed to make room; nil if there was room.
    mutating func insert(_ entry: Entry) -> Entry? {
        defer { entries.append(entry) }
        if let index = entries.lastIndex(where: { $0.isOfSpace(of: entry) }) {
            entries.remove(at: index)
            return nil
        }
        if entries.count(where: { $0.isOfServer(of: entry) }) >= Self.maximumPerServer,
            let oldest = entries.firstIndex(where: { $0.isOfServer(of: entry) })
        {
            return entries.remove(at: oldest)
        }
        return entries.count >= Self.maximumCount ? entries.removeFirst() : nil
    }

    // MARK: The file

    init(_ form: [Entry]) {
        // The newest entries are at the end.
        entries = form.suffix(Self.maximumCount)
    }

    static var emptyForm: [Entry] { [] }

    func add(to form: inout [Entry], from position: Int) -> Int? {
        form = entries
        return nil
    }
}

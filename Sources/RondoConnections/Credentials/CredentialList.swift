internal import FoundationNetworking
internal import RondoCore

/// Credentials that loads have stored, each the default of its protection space, the oldest first: those of this process,
/// and those that outlive it.
///
/// A server names its realms itself, and a delegate may answer each: so there are limits, and within them it is quick to go
/// through all.
struct CredentialList: Keepable {
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
    /// Credentials of one server or proxy. A server that names ever new realms does not push out those of others.
    static let maximumPerServer = 32
    /// Bytes of all that an entry says.
    static let maximumEntrySize = 8_192

    private(set) var entries: [Entry] = []

    init() {}

    /// Adds an entry in place of that of the same space.
    ///
    /// - Returns: Whether there is anything new.
    mutating func add(_ entry: Entry) -> Bool {
        guard entry.size <= Self.maximumEntrySize, !entries.contains(entry) else { return false }
        _ = insert(entry)
        return true
    }

    /// Adds an entry, of a size that is allowed, in place of that of the same space. It is the newest from here on.
    ///
    /// - Returns: The entry of another space that had to make room; nil if there was room.
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
        // The last ones are the newest.
        entries = form.suffix(Self.maximumCount)
    }

    static var emptyForm: [Entry] { [] }

    func add(to form: inout [Entry], from position: Int) -> Int? {
        form = entries
        return nil
    }
}

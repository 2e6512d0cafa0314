internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// Access to one of Foundation's credential storages, with look-ups that work on Linux.
///
/// On Linux, `==` on two equal protection spaces is false, so a credential is found only with the very object
/// that it was stored with; here stored spaces are compared by their properties.
final class StoredCredentials: Sendable {
    /// The shared storage, the only one whose credentials can outlive the process.
    static let shared = StoredCredentials(.shared)

    private let storage: URLCredentialStorage
    /// The credentials that loads have stored in this process, within the limits of the list, because a
    /// server chooses its realms itself. Credentials that a program stores are not in it, and are never
    /// displaced.
    private let ofLoads = Mutex(CredentialList())

    /// For the shared storage use `shared`.
    init(_ storage: URLCredentialStorage) { self.storage = storage }

    private var isShared: Bool { self === Self.shared }

    /// The default credential of `space`; nil if there is none. A stored space of the same method is
    /// preferred to one that is for any method. If several are left, which one was stored last is not known:
    /// then the names decide, so that it is always the same one.
    func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        let spaces = storedSpaces(like: space)
        let exact = spaces.filter { $0.authenticationMethod == space.authenticationMethod }
        return firstDefault(of: exact) ?? firstDefault(of: spaces)
    }

    private func firstDefault(of spaces: [URLProtectionSpace]) -> URLCredential? {
        spaces.compactMap(defaultCredential(in:)).min { left, right in
            (left.user ?? "", left.password ?? "") < (right.user ?? "", right.password ?? "")
        }
    }

    /// The default of a stored space, or else the credential of the first of its users by name.
    ///
    /// Foundation's `set(_:for:)` makes the first credential of a space its default, and replaces it only in
    /// the table of users. So the default credential names the user, and that table has the password of that
    /// name; the program has removed a name that is not in it.
    private func defaultCredential(in stored: URLProtectionSpace) -> URLCredential? {
        guard let users = storage.credentials(for: stored) else { return nil }
        let preferred = storage.defaultCredential(for: stored)?.user
        return preferred.flatMap { users[$0] } ?? users.min { $0.key < $1.key }?.value
    }

    /// Stores a credential for a load, as the default of `space` and as far as its persistence allows (rule
    /// UC-51). Beyond `CredentialList.maximumCount`, or `maximumPerServer` for one server, the oldest is
    /// forgotten; a credential of more than `maximumEntrySize` bytes is not stored.
    func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence != .none, let entry = CredentialList.Entry(credential, for: space),
            entry.size <= CredentialList.maximumEntrySize
        else { return }
        let isOfProgram =
            holds(credential, for: space)
            && !ofLoads.withLock { $0.entries.contains { $0.isSameUser(as: entry) } }
        put(credential, for: space)
        if isShared { PersistedCredentials.store(credential, for: space) }
        // Outside the lock: Foundation's storage posts a notification, which may call the program.
        if !isOfProgram, let oldest = ofLoads.withLock({ $0.insert(entry) }) {
            remove(oldest.credential, for: oldest.space)
        }
    }

    private func holds(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard let user = credential.user else { return false }
        return storedSpaces(like: space).contains { storage.credentials(for: $0)?[user] != nil }
    }

    /// Makes a credential the default of `space`, for as long as the process lives.
    func put(_ credential: URLCredential, for space: URLProtectionSpace) {
        let spaces = storedSpaces(like: space)
        for stored in spaces.isEmpty ? [space] : spaces {
            storage.setDefaultCredential(credential, for: stored)
        }
    }

    func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        for stored in storedSpaces(like: space) { remove(credential, in: stored) }
    }

    /// Removes the user of `credential`, unless the program has set another password since.
    private func remove(_ credential: URLCredential, in stored: URLProtectionSpace) {
        let own = (storage.credentials(for: stored) ?? [:]).values.filter { $0.user == credential.user }
        guard own.allSatisfy({ $0.password == credential.password }) else { return }
        for each in own { storage.remove(each, for: stored) }
        // It may be an older credential of the user, which Foundation would leave there.
        if let preferred = storage.defaultCredential(for: stored), preferred.user == credential.user {
            storage.remove(preferred, for: stored)
        }
    }

    // MARK: Credentials that outlive the process

    /// Keeps credentials of permanent persistence in `file` from now on, and stores those that are already in
    /// it.
    static func keep(in file: URL?, onFailure: (@Sendable (any Error) -> Void)?) throws {
        for entry in try PersistedCredentials.keep(in: file, onFailure: onFailure) {
            shared.put(entry.credential, for: entry.space)
        }
    }

    /// Forgets all persisted credentials, in the file and in the storage.
    static func forgetAllPersisted() throws {
        let (forgotten, failure) = PersistedCredentials.forgetAll()
        for entry in forgotten { shared.remove(entry.credential, for: entry.space) }
        if let failure { throw failure.error }
    }

    // MARK: Spaces

    /// All stored spaces that are equal to `space`, or would be but for the method `default`, in no order: a
    /// program that makes an object for each credential has several.
    private func storedSpaces(like space: URLProtectionSpace) -> [URLProtectionSpace] {
        storage.allCredentials.keys.filter { Self.isSame($0, space) }
    }

    static func isSame(_ left: URLProtectionSpace, _ right: URLProtectionSpace) -> Bool {
        left.host.lowercased() == right.host.lowercased() && left.port == right.port
            && left.scheme == right.scheme && left.isProxy() == right.isProxy()
            && left.proxyType == right.proxyType && left.realm == right.realm
            && (left.authenticationMethod == right.authenticationMethod
                || left.authenticationMethod == NSURLAuthenticationMethodDefault
                || right.authenticationMethod == NSURLAuthenticationMethodDefault)
    }
}

extension URLProtectionSpace {
    /// The protocol as the scheme of a URL. Programs also write the constants `NSURLProtectionSpaceHTTP` and
    /// `NSURLProtectionSpaceHTTPS`, which on Apple's systems are the schemes, and in Foundation on Linux
    /// their own names.
    var scheme: String? {
        switch self.protocol {
        case NSURLProtectionSpaceHTTP: "http"
        case NSURLProtectionSpaceHTTPS: "https"
        case let other: other
        }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// Foundation's credential storage, with look-ups that find what was stored.
///
/// On Linux two equal protection spaces are not equal, so that a credential is found only with the very
/// object that it was stored with; here the stored spaces are compared by what they say.
enum StoredCredentials {
    /// What loads have stored in this process, within the limits of the list: a server names its realms itself. What a
    /// program stores is not part of it, and never makes room.
    private static let ofLoads = Mutex(CredentialList())

    /// The default credential of `space`; nil if there is none.
    static func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        let storage = URLCredentialStorage.shared
        guard let stored = storedSpace(like: space) else { return nil }
        return storage.defaultCredential(for: stored) ?? storage.credentials(for: stored)?.values.first
    }

    /// Stores what its persistence allows to be stored (rule UC-51), as the default of `space`, for a load. Of more than
    /// `CredentialList.maximumCount`, or `maximumPerServer` of one server, the oldest is forgotten; one of more than
    /// `maximumEntrySize` bytes is not stored at all.
    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence != .none, let entry = CredentialList.Entry(credential, for: space),
            entry.size <= CredentialList.maximumEntrySize
        else { return }
        let isOfProgram =
            holds(credential, for: space)
            && !ofLoads.withLock { $0.entries.contains { $0.isSameUser(as: entry) } }
        put(credential, for: space)
        KeptCredentials.store(credential, for: space)
        // Foundation's storage posts a notification, which may call the program: without the lock.
        if !isOfProgram, let oldest = ofLoads.withLock({ $0.insert(entry) }) {
            remove(oldest.credential, for: oldest.space)
        }
    }

    private static func holds(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard let user = credential.user, let stored = storedSpace(like: space) else { return false }
        return URLCredentialStorage.shared.credentials(for: stored)?[user] != nil
    }

    /// Makes a credential the default of `space`, for as long as the process lives.
    static func put(_ credential: URLCredential, for space: URLProtectionSpace) {
        URLCredentialStorage.shared.setDefaultCredential(credential, for: storedSpace(like: space) ?? space)
    }

    static func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let stored = storedSpace(like: space) else { return }
        for own in (URLCredentialStorage.shared.credentials(for: stored) ?? [:]).values
        where own.user == credential.user {
            URLCredentialStorage.shared.remove(own, for: stored)
        }
    }

    // MARK: Those that outlive the process

    /// Keeps credentials of permanent persistence in `file` from here on, and stores those that it holds.
    static func keep(in file: URL?, onFailure: (@Sendable (any Error) -> Void)?) throws {
        for entry in try KeptCredentials.keep(in: file, onFailure: onFailure) {
            put(entry.credential, for: entry.space)
        }
    }

    /// Forgets all that are kept, in the file and in the storage.
    static func forgetAllKept() throws {
        let (forgotten, failure) = KeptCredentials.forgetAll()
        for entry in forgotten { remove(entry.credential, for: entry.space) }
        if let failure { throw failure.error }
    }

    // MARK: Spaces

    private static func storedSpace(like space: URLProtectionSpace) -> URLProtectionSpace? {
        URLCredentialStorage.shared.allCredentials.keys.first { isSame($0, space) }
    }

    static func isSame(_ left: URLProtectionSpace, _ right: URLProtectionSpace) -> Bool {
        left.host.lowercased() == right.host.lowercased() && left.port == right.port
            && left.protocol == right.protocol && left.isProxy() == right.isProxy()
            && left.proxyType == right.proxyType && left.realm == right.realm
            && (left.authenticationMethod == right.authenticationMethod
                || left.authenticationMethod == NSURLAuthenticationMethodDefault
                || right.authenticationMethod == NSURLAuthenticationMethodDefault)
    }
}

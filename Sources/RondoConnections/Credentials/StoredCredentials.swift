internal import FoundationNetworking
internal import RondoCore

/// Foundation's credential storage, with look-ups that find what was stored.
///
/// On Linux two equal protection spaces are not equal, so that a credential is found only with the very
/// object that it was stored with; here the stored spaces are compared by what they say.
enum StoredCredentials {
    /// The default credential of `space`; nil if there is none.
    static func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        let storage = URLCredentialStorage.shared
        guard let stored = storedSpace(like: space) else { return nil }
        return storage.defaultCredential(for: stored) ?? storage.credentials(for: stored)?.values.first
    }

    /// Stores what its persistence allows to be stored (rule UC-51), as the default of `space`.
    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence != .none else { return }
        put(credential, for: space)
        KeptCredentials.store(credential, for: space)
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

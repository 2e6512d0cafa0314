import Rondo
import Testing

@testable import RondoConnections

/// Tests which credential of a storage answers a challenge, without a load.
@Suite struct StoredCredentialsTests {
    /// An object of its own, which Foundation finds equal to no other.
    private func space(_ method: String? = NSURLAuthenticationMethodHTTPBasic) -> URLProtectionSpace {
        URLProtectionSpace(
            host: "host.test", port: 80, protocol: "http", realm: "r", authenticationMethod: method)
    }

    private func credential(_ password: String, of user: String = "user") -> URLCredential {
        URLCredential(user: user, password: password, persistence: .forSession)
    }

    private func found(_ stored: StoredCredentials, for space: URLProtectionSpace) -> String? {
        stored.defaultCredential(for: space).map { "\($0.user ?? "-") \($0.password ?? "-")" }
    }

    @Test func `UC-51 a credential that the program sets anew replaces the one of its user`() {
        let (storage, space) = (URLCredentialStorage(), space())
        let stored = StoredCredentials(storage)
        storage.set(credential("old"), for: space)
        storage.set(credential("other", of: "another"), for: space)
        #expect(found(stored, for: self.space()) == "user old")
        storage.set(credential("new"), for: space)
        #expect(found(stored, for: self.space()) == "user new")
        storage.setDefaultCredential(credential("third", of: "third"), for: space)
        #expect(found(stored, for: self.space()) == "third third")
    }

    @Test func `UC-51 a credential that was removed answers no challenge, though it was the default once`() {
        for removesByProgram in [true, false] {
            let (storage, space) = (URLCredentialStorage(), space())
            let (stored, new) = (StoredCredentials(storage), credential("new"))
            storage.set(credential("old"), for: space)
            storage.set(new, for: space)
            storage.set(credential("other", of: "another"), for: space)
            if removesByProgram {
                storage.remove(new, for: space)
            } else {
                stored.remove(new, for: self.space())
                #expect(storage.defaultCredential(for: space) == nil)
            }
            #expect(found(stored, for: self.space()) == "another other")
        }
    }

    @Test func `UC-51 a password that the program has set stays when a load's one for its user is removed`() {
        let storage = URLCredentialStorage()
        let (stored, first, second) = (StoredCredentials(storage), space(), space())
        stored.put(credential("of the load"), for: first)
        storage.set(credential("own"), for: second)
        stored.remove(credential("of the load"), for: space())
        #expect(storage.credentials(for: first)?["user"] == nil)
        #expect(found(stored, for: space()) == "user own")

        stored.put(credential("of another load"), for: space())
        storage.set(credential("newer"), for: second)
        stored.remove(credential("of another load"), for: space())
        #expect(found(stored, for: space()) == "user newer")
    }

    /// The spaces are in a dictionary that hashes objects by their addresses: luck does not find the same one 32 times.
    @Test
    func `UC-51 the space of the challenge's method answers, and all equal spaces get a new password`() {
        for _ in 0..<32 {
            let storage = URLCredentialStorage()
            let stored = StoredCredentials(storage)
            storage.set(credential("of any"), for: space(NSURLAuthenticationMethodDefault))
            storage.set(credential("of Digest"), for: space(NSURLAuthenticationMethodHTTPDigest))
            storage.set(credential("of Basic"), for: space())
            #expect(found(stored, for: space()) == "user of Basic")

            stored.put(credential("new"), for: space())
            let spaces = storage.allCredentials.keys
            #expect(spaces.count == 3)
            for space in spaces {
                let isOther = space.authenticationMethod == NSURLAuthenticationMethodHTTPDigest
                #expect(storage.credentials(for: space)?["user"]?.password == (isOther ? "of Digest" : "new"))
                #expect(storage.defaultCredential(for: space)?.password == (isOther ? "of Digest" : "new"))
            }
            stored.remove(credential("new"), for: space())
            #expect(storage.allCredentials.count == 1)
            #expect(stored.defaultCredential(for: space()) == nil)
        }
    }

    @Test func `UC-51 the same one of several users of a space always answers`() {
        for _ in 0..<32 {
            let storage = URLCredentialStorage()
            for name in ["b", "a", "c"] { storage.set(credential("of \(name)", of: name), for: space()) }
            #expect(found(StoredCredentials(storage), for: space()) == "a of a")
        }
    }

    @Test(arguments: [
        (NSURLProtectionSpaceHTTP, "http"), (NSURLProtectionSpaceHTTPS, "https"), ("http", "http"),
    ])
    func `UC-51 a space that is made with Foundation's constants is that of the scheme`(
        _ name: String, _ scheme: String
    ) {
        func space(_ name: String) -> URLProtectionSpace {
            URLProtectionSpace(
                host: "host.test", port: 1, protocol: name, realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        }
        let storage = URLCredentialStorage()
        let stored = StoredCredentials(storage)
        storage.set(credential("stored"), for: space(name))
        #expect(found(stored, for: space(scheme)) == "user stored")
        #expect(found(stored, for: space(scheme == "http" ? "https" : "http")) == nil)
        let entries = [name, scheme].map { CredentialList.Entry(credential("stored"), for: space($0)) }
        #expect(entries[0] == entries[1] && entries[0]?.scheme == scheme)
    }
}

internal import FoundationNetworking
internal import RondoCore

/// The credentials of permanent persistence that outlive the process, if the program has named a
/// file.
enum PersistedCredentials {
    private static let persisted = PersistedValue(CredentialList(), label: "rondo.credentials")

    /// Keeps credentials in `file` from now on. With nil they are kept only until the program ends.
    ///
    /// - Returns: The credentials that are already in the file.
    /// - Throws: Foundation's error if the file exists and cannot be read.
    static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)?
    ) throws -> [CredentialList.Entry] {
        try persisted.keep(in: file, otherwise: CredentialList(), onFailure: onFailure)
        return persisted.read { $0.entries }
    }

    /// Forgets all credentials, in the file too.
    ///
    /// - Returns: The credentials that were kept, and the failure if the file could not be written.
    static func forgetAll() -> (forgotten: [CredentialList.Entry], failure: PersistedFile.Failure?) {
        let (forgotten, failure) = persisted.replace(with: CredentialList())
        return (forgotten.entries, failure)
    }

    /// Forgets all credentials; the file is written like after any other change.
    static func removeAll() {
        persisted.change { list in
            let hadEntries = !list.entries.isEmpty
            list = CredentialList()
            return hadEntries
        }
    }

    /// Writes everything that waits to be written, and returns when that is done.
    static func flush() { persisted.flush() }

    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence == .permanent, persisted.hasFile,
            let entry = CredentialList.Entry(credential, for: space)
        else { return }
        persisted.change { $0.add(entry) }
    }
}

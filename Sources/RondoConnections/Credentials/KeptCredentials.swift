internal import FoundationNetworking
internal import RondoCore

/// The credentials of permanent persistence that outlive the process, where the program has named a file.
enum KeptCredentials {
    private static let kept = KeptValue(CredentialList(), label: "rondo.credentials")

    /// Keeps credentials in `file` from here on; nil: only until the program ends.
    ///
    /// - Returns: Those that the file holds already.
    /// - Throws: What Foundation says if the file is there and cannot be read.
    static func keep(
        in file: URL?, onFailure: (@Sendable (any Error) -> Void)?
    ) throws -> [CredentialList.Entry] {
        try kept.keep(in: file, otherwise: CredentialList(), onFailure: onFailure)
        return kept.read { $0.entries }
    }

    /// Forgets all of them, in the file too.
    ///
    /// - Returns: What was kept, and why the file could not be written, if so.
    static func forgetAll() -> (forgotten: [CredentialList.Entry], failure: KeptFile.Failure?) {
        let (forgotten, failure) = kept.replace(with: CredentialList())
        return (forgotten.entries, failure)
    }

    /// Writes what waits to be written, and returns when it is.
    static func flush() { kept.flush() }

    static func store(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard credential.persistence == .permanent, kept.hasFile,
            let entry = CredentialList.Entry(credential, for: space)
        else { return }
        kept.change { $0.add(entry) }
    }
}

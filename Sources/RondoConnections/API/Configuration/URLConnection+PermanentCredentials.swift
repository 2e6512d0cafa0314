public import RondoCore

extension URLConnection {
    /// Credentials of permanent persistence, which are kept beyond the end of the process (rule UC-51).
    ///
    /// Linux has no key chain that every program can rely on, and Foundation's storage forgets everything
    /// when the process ends. So the program chooses where they are kept: in one file, readable only for its
    /// user, with passwords in plain text. Until the program has chosen a file, such a credential lives as
    /// long as the process. Failures to write the file are reported, see `keep(in:onFailure:)`. Any thread
    /// may call the methods.
    public enum PermanentCredentials {
        /// Keeps credentials in `file` from now on, and adds those in the file to the shared credential
        /// storage. With nil, credentials are kept only until the program ends, which is also the initial
        /// state.
        ///
        /// A credential that a delegate gives for a challenge is kept once the server has accepted it. A
        /// credential that a program puts into `URLCredentialStorage` itself is not, and one that it removes
        /// there stays in the file: `forgetAll()` removes all, and so does
        /// `URLSession.reset(completionHandler:)` of a session with the shared credential storage. A thread
        /// of Rondo's own writes the file within half a second, and it is written when the program ends in an
        /// orderly way. Beyond 1,000 credentials, or 32 for one server, the oldest are removed; a credential
        /// of more than 8 KiB is not kept at all.
        ///
        /// The file is read by this call only, and written as a whole: each process needs one of its own,
        /// since the last that writes would replace what others have kept.
        ///
        /// - Parameter onFailure: Called when `file` could not be written, with a `CocoaError` that has the
        ///   path under `NSFilePathErrorKey` and the errno under `NSUnderlyingErrorKey`. No load fails for
        ///   this reason: the credential is remembered until the program ends, and written together with the
        ///   next one that is kept. It is called once until writing succeeds again, on the thread that writes
        ///   the file, with no lock held. If nil, a warning is logged to `rondo.connections`.
        /// - Throws: Foundation's error if the file exists and cannot be read.
        public static func keep(
            in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
        ) throws {
            try StoredCredentials.keep(in: file, onFailure: onFailure)
        }

        /// Forgets all kept credentials: in the file, which is written when this returns, and in the shared
        /// credential storage.
        ///
        /// - Throws: A `CocoaError`, as described at `keep(in:onFailure:)`, if the file could not be written
        ///   and therefore still holds the credentials.
        public static func forgetAll() throws { try StoredCredentials.forgetAllPersisted() }
    }
}

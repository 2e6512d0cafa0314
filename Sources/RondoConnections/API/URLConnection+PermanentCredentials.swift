public import RondoCore

extension URLConnection {
    /// Credentials of permanent persistence, kept beyond the process (rule UC-51).
    ///
    /// Linux has no key chain that every program could rely on, and Foundation's storage forgets all when the process
    /// ends. So where they are kept is for the program to say: in one file, readable for its user alone, passwords as
    /// they are. Until it has said so, such a credential lives as long as the process. A file that cannot be written is
    /// told of, see `keep(in:onFailure:)`. Any thread may call everything here.
    public enum PermanentCredentials {
        /// Keeps credentials in `file` from here on, and puts those that it holds into the shared credential storage;
        /// nil: only until the program ends, as at first.
        ///
        /// What a delegate gives for a challenge is kept once the server has accepted it. What a program puts into
        /// `URLCredentialStorage` by itself is not. The file is written within half a second, by a thread of Rondo's own,
        /// and when the program ends in an orderly way. Of more than 1,000 credentials, or 32 of one server, the oldest
        /// are not kept any longer, and one of more than 8 KiB is not kept at all.
        ///
        /// - Parameter onFailure: Told when `file` could not be written: a `CocoaError` with the path under
        ///   `NSFilePathErrorKey` and the errno under `NSUnderlyingErrorKey`. No load fails by it: the credential is
        ///   remembered until the program ends, and written with the next one that is kept. It is told once, until
        ///   writing succeeds again, on the thread that writes the file, with no lock held. Nil: a warning in
        ///   the log, `rondo.connections`.
        /// - Throws: What Foundation says if the file is there and cannot be read.
        public static func keep(
            in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
        ) throws {
            try StoredCredentials.keep(in: file, onFailure: onFailure)
        }

        /// Forgets all of them: in the file, which is written when this returns, and in the shared credential storage.
        ///
        /// - Throws: A `CocoaError`, as `keep(in:onFailure:)` has it, if the file could not be written: it still holds
        ///   them.
        public static func forgetAll() throws { try StoredCredentials.forgetAllKept() }
    }
}

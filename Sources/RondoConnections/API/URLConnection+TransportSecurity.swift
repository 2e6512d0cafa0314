public import RondoCore

extension URLConnection {
    /// The hosts that have asked to be spoken to by TLS only (HSTS, RFC 6797), as the connections of this process
    /// remember them.
    ///
    /// A response by https says so in Strict-Transport-Security; a request by http to such a host then becomes one
    /// by https before anything is sent, which the delegate is shown as a canonical request (rule UC-29). Any
    /// thread may call everything here.
    public enum TransportSecurity {
        /// Remembers hosts in `file` from here on, and those that it holds already; nil: only until the program
        /// ends, as at first.
        ///
        /// What servers say is written within half a second, by a thread of Rondo's own, and when the program ends in an
        /// orderly way. Of 10,000 hosts those that expire first are forgotten for further ones.
        ///
        /// - Parameter onFailure: Told when `file` could not be written, as for
        ///   `PermanentCredentials.keep(in:onFailure:)`; what was to be written is remembered until the program ends.
        /// - Throws: What Foundation says if the file is there and cannot be read.
        public static func keep(
            in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
        ) throws {
            try KnownHSTSHosts.keep(in: file, onFailure: onFailure)
        }

        /// Forgets all hosts, also in the file, which is written when this returns.
        public static func forgetAll() { KnownHSTSHosts.forgetAll() }

        /// Whether `host` may be spoken to by TLS only.
        public static func covers(_ host: String) -> Bool { KnownHSTSHosts.covers(host) }
    }
}

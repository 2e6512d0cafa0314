public import RondoCore

extension URLConnection {
    /// The hosts that have asked to be contacted over TLS only (HSTS, RFC 6797), as the connections of this
    /// process remember them.
    ///
    /// A host asks for this in the Strict-Transport-Security field of a response over https. An http request
    /// to such a host becomes an https request before anything is sent, and the delegate sees that as a
    /// canonical request (rule UC-29). Any thread may call the methods.
    public enum TransportSecurity {
        /// Remembers hosts in `file` from now on, and those that are already in it. With nil, hosts are
        /// remembered only until the program ends, which is also the initial state.
        ///
        /// A thread of Rondo's own writes the servers' wishes within half a second, and the file is written
        /// when the program ends in an orderly way. Beyond 10,000 hosts those that expire first are
        /// forgotten. The file is read by this call only, and written as a whole: each process needs one of
        /// its own.
        ///
        /// - Parameter onFailure: Called when `file` could not be written, as for
        ///   `PermanentCredentials.keep(in:onFailure:)`; the hosts are then remembered until the program
        ///   ends.
        /// - Throws: Foundation's error if the file exists and cannot be read.
        public static func keep(
            in file: URL?, onFailure: (@Sendable (any Error) -> Void)? = nil
        ) throws {
            try KnownHSTSHosts.keep(in: file, onFailure: onFailure)
        }

        /// Forgets all hosts; the file, too, has been written when this returns.
        public static func forgetAll() { KnownHSTSHosts.forgetAll() }

        /// Whether `host` may be contacted over TLS only.
        public static func covers(_ host: String) -> Bool { KnownHSTSHosts.covers(host) }
    }
}

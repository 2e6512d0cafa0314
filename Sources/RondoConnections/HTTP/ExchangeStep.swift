/// A step of an exchange for which there is no delegate method; for logs.
enum ExchangeStep: Sendable, Equatable {
    case resolving(host: String)
    case connecting(address: String)
    case connected(address: String)
    case secured(version: String, cipher: String, subject: String)
    /// The request goes over a connection that was kept.
    case reusing(address: String)
    /// Request line and header fields, each line ended by CR LF.
    case requestHead(String)
    /// Status line and header fields, each line ended by CR LF; interim responses too. A Location that is not UTF-8 is
    /// also told as the URI reference that stands for its bytes.
    case responseHead(String, location: String?)
    case closed(reason: String)
    /// A credential that was to answer a challenge cannot be sent; the load goes on without one.
    case unusableCredential(reason: String)
}

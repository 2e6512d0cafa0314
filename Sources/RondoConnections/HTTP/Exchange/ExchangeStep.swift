internal import RondoHTTP

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
    /// Status line and header fields, each line ended by CR LF; interim responses too. The fields, in which
    /// values have the bytes that came, are nil where a program has made the step.
    case responseHead(String, fields: HeaderFields?)
    case closed(reason: String)
    /// A credential that was to answer a challenge cannot be sent; the load goes on without one.
    case unusableCredential(reason: String)

    /// The same without the fields, whose bytes stand in the head as text.
    var withoutFields: ExchangeStep {
        if case .responseHead(let head, _) = self { .responseHead(head, fields: nil) } else { self }
    }
}

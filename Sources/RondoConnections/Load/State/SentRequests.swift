/// The last request that a load has sent, and the first, whose origin the settings were made for.
///
/// Used inside the gate of its load.
struct SentRequests {
    /// The request that is being sent or answered, or was last; before that, the load's own.
    private(set) var last: LoadRequest
    /// The first request that was sent; nil before that.
    private var first: LoadRequest?
    /// Whether the first request goes to another origin than the one that the settings were made for.
    private let beginsElsewhere: Bool

    init(_ request: LoadRequest, beginsElsewhere: Bool) {
        last = request
        self.beginsElsewhere = beginsElsewhere
    }

    /// Notes that `request` is being sent: the load's request, or one for the rest of its body.
    mutating func note(_ request: LoadRequest) {
        if first == nil { first = request }
        last = request
    }

    /// Whether `address` belongs to the origin for which the settings were made: that of the first request
    /// (RFC 6454, section 5). Always false if the load begins elsewhere, because that origin is not known
    /// then.
    func isAtOrigin(_ address: WebAddress) -> Bool {
        if beginsElsewhere { return false }
        guard let first else { return true }
        guard let origin = first.address else { return false }
        return origin.isSecure == address.isSecure && origin.port == address.port
            && (origin.host == address.host || origin.host.lowercased() == address.host.lowercased())
    }
}

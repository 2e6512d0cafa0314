/// Why a load sends a request, which decides what may answer it. `LoadState` gives the reason with `Action.send`.
enum SendReason: Equatable {
    /// It is the load's first request, in the form that the delegate has agreed to.
    case first
    case redirect
    /// It is the last request again, with a credential.
    case credential
    /// It is the last request again without `Expect`, after a 417.
    case withoutExpectation
    /// It asks for a whole file, in place of a part that cannot be used.
    case wholeFile
    /// It is the last request again, because the stored response does not fit the server's head (`LoadCache`).
    case withoutConditions
    /// It is the last request again, because there may be a network again (`ConnectivityWait`).
    case network
    /// It asks for the rest of a download, whose connection was lost (`DownloadTarget`).
    indirect case rest(RequestedRest)

    // A kept connection that turns out to be dead is no reason of the load: `ServerAnswer` sends the same request over another
    // one, as `RetryRule` allows.

    /// Whether the cache, a protocol of the program or a file may answer. If not, a server does.
    var asksCache: Bool {
        switch self {
        case .first, .redirect, .credential, .withoutExpectation, .wholeFile: true
        case .withoutConditions, .network, .rest: false
        }
    }

    /// Whether the request may go over a kept connection.
    var mayReuse: Bool { if case .rest = self { false } else { true } }
}

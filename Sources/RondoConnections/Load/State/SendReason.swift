/// Why a load sends a request, which decides what may answer it. `LoadState` gives the reason with
/// `Action.send`: it decides whether a request is sent, sent again in the same or another form, or not.
///
/// One thing is left to `RetryRule`: whether `ServerAnswer` sends the same request over a second connection,
/// because the first was lost before the server answered, or the server has answered 408. That is no reason
/// of the load: it stays in its phase, with the same answer and the same conditions of the cache, and what
/// the rule depends on only the exchange knows (`RetryRule.Facts`).
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
    /// It is the last request again, because the stored response does not fit the server's head
    /// (`LoadCache`).
    case withoutConditions
    /// It is the last request again, because there may be a network again (`ConnectivityWait`).
    case network
    /// It asks for the rest of a download, whose connection was lost (`DownloadTarget`).
    indirect case rest(RequestedRest)

    /// Whether the cache, a protocol of the program or a file may answer. If not, a server does.
    var asksCache: Bool {
        switch self {
        case .first, .redirect, .credential, .withoutExpectation, .wholeFile: true
        case .withoutConditions, .network, .rest: false
        }
    }

    /// Whether the request may go over a kept connection. If `RetryRule` has it sent again, the second
    /// connection is a new one in any case.
    var mayReuse: Bool { if case .rest = self { false } else { true } }
}

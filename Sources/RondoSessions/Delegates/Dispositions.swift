extension URLSession {
    /// What becomes of a challenge; the numbers are Apple's.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// The credential is used; nil: the load goes on without one.
        case useCredential = 0
        /// As if the method were not implemented.
        case performDefaultHandling = 1
        /// The task ends as by `cancel()`.
        case cancelAuthenticationChallenge = 2
        /// The next protection space that the server offers is asked about; where there is none, the response to the
        /// challenge is the result, and a challenge of TLS fails.
        case rejectProtectionSpace = 3
    }

    /// What becomes of a response to a data task; the numbers are Apple's.
    public enum ResponseDisposition: Int, Sendable {
        /// The task ends as by `cancel()`.
        case cancel = 0
        /// The body follows.
        case allow = 1
        /// The body goes to a file, by a download task that takes this task's place.
        case becomeDownload = 2
        /// Of a 101: the connection is a stream task's, which takes this task's place (rule US-47). Any other response counts as
        /// `cancel`.
        case becomeStream = 3
    }

    /// What becomes of a request that was delayed; the numbers are Apple's. Only background sessions delay requests, and
    /// there are none on Linux (rule US-15).
    public enum DelayedRequestDisposition: Int, Sendable {
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }
}

extension URLSession {
    /// The answer to an authentication challenge (rule US-56). The raw values are Apple's.
    public enum AuthChallengeDisposition: Int, Sendable {
        /// Use the credential; with nil the load continues without one.
        case useCredential = 0
        /// Handle the challenge as if the method were not implemented.
        case performDefaultHandling = 1
        /// End the task as `cancel()` does.
        case cancelAuthenticationChallenge = 2
        /// Ask about the next protection space that the server offers. If there is none, the response with
        /// the challenge is the result of the task; a challenge of TLS fails.
        case rejectProtectionSpace = 3
    }

    /// The answer to the response of a data task (rules US-45 to US-47). The raw values are Apple's.
    public enum ResponseDisposition: Int, Sendable {
        /// End the task as `cancel()` does.
        case cancel = 0
        /// Load the body.
        case allow = 1
        /// Save the body in a file, by a download task that takes this task's place.
        case becomeDownload = 2
        /// Turn the connection of a 101 response into a stream task, which takes this task's place. With any
        /// other response the task ends as by `cancel`.
        case becomeStream = 3
    }

    /// The answer for a delayed request. The raw values are Apple's. Only background sessions delay requests,
    /// and Linux has none (rule US-15).
    public enum DelayedRequestDisposition: Int, Sendable {
        case continueLoading = 0
        case useNewRequest = 1
        case cancel = 2
    }
}

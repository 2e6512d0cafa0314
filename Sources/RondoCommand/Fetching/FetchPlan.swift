import Rondo

/// What `rondo fetch` is to do: the command line, understood and found to make sense.
struct FetchPlan: Sendable {
    enum Output: Equatable, Sendable {
        case nowhere
        /// Binary data goes to a terminal only where it was asked for, by `-o -`.
        case standardOutput(evenBinary: Bool)
        case file(String)
    }

    var request: URLRequest
    /// Header fields that are not to be sent, though they would be.
    var omittedFields: [String]
    var mode: RunLoop.Mode
    var output: Output
    var printsHeads: Bool
    var followsRedirects: Bool
    var certificateAuthorities: String?
    var verifies: Bool
    /// Seconds for the whole load.
    var maximumTime: Double?
    var isVerbose: Bool
    var proxy: URLConnection.ProxyChoice
    var writeOut: WriteOut?
    /// Name and password of `-u`, for challenges that a field sent in advance does not answer.
    var user: String?
    var printsEvents: Bool
    var showsProgress: Bool

    /// The end of the path as it stands, still encoded: decoded it might hold a slash. Without dots and dashes in front,
    /// as a name that a server suggests (rule UC-26): URLs are often taken from pages.
    static func remoteName(of url: URL) -> String? {
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? ""
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let harmless = name.drop { $0 == "." || $0 == "-" }
        return harmless.isEmpty ? nil : String(harmless)
    }
}

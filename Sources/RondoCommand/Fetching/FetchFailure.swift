import Rondo

/// Why a fetch failed: a code for programs and a sentence for people.
struct FetchFailure: Error, Equatable {
    var domain = NSURLErrorDomain
    var code: Int
    var message: String

    init(_ code: URLError.Code, _ message: String) {
        self.code = code.rawValue
        self.message = message
    }

    /// What the connection reported, with host and cause named even where its own sentence should not.
    init(_ error: any Error, url: URL?) {
        let error = error as NSError
        domain = error.domain
        code = error.code
        var text = Self.inOptions(error.localizedDescription)
        let isOfOptions = text.hasPrefix("--")
        if let host = url?.host, !isOfOptions, !text.contains(host) { text = "\(host): \(text)" }
        // A sentence of the library's own holds the cause already, in other words than the cause's.
        if error.userInfo[NSLocalizedDescriptionKey] == nil,
            let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError,
            let reason = cause.userInfo[NSLocalizedDescriptionKey] as? String, !text.contains(reason)
        {
            text += " (\(reason))"
        }
        message = text
    }

    /// The library's advice names its own settings; here they are options, or there is none.
    private static func inOptions(_ sentence: String) -> String {
        sentence
            .replacing(/TLSSettings\.certificateAuthorities \(\.file “(.*)”\)/) { "--cacert: \($0.1)" }
            .replacingOccurrences(of: "TLSSettings.certificateAuthorities", with: "--cacert")
            .replacingOccurrences(of: "; see TLSSettings.minimumVersion", with: "")
    }
}

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
        var text = error.localizedDescription
        if let host = url?.host, !text.contains(host) { text = "\(host): \(text)" }
        if let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError,
            let reason = cause.userInfo[NSLocalizedDescriptionKey] as? String, !text.contains(reason)
        {
            text += " (\(reason))"
        }
        // The library's advice names its own settings; here they are options.
        message = text.replacingOccurrences(of: "TLSSettings.certificateAuthorities", with: "--cacert")
    }
}

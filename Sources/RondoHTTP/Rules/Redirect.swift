package import struct Foundation.URL

/// The decision about a redirect: the next URL and method (rules UC-33 and UC-34; RFC 9110 §15.4).
package enum Redirect {
    package enum Decision: Sendable, Equatable {
        /// The response is a result like any other.
        case notARedirect
        /// A redirect without a usable Location: none, several that differ, an empty one (which Chromium
        /// ignores too), or one that is not a URL with a host and, if it names a port, a possible port.
        case missingLocation
        /// Send the request to this URL. `keepsBody`: whether its body, if any, is sent too, which counts as
        /// a retransmission. If `sameOrigin` is false, credentials must not be sent.
        case to(url: URL, method: String, keepsBody: Bool, sameOrigin: Bool)
        /// The redirect leads to a scheme other than http and https, to which no server may redirect a
        /// request.
        case unsupported(url: URL)
    }

    /// Decides about a response with this status and Location. The caller sends the request.
    package static func decide(
        status: Int, location: @autoclosure () -> String?, method: String, currentURL: URL
    ) -> Decision {
        guard isRedirect(status) else { return .notARedirect }
        guard let location = location(), let target = target(of: location, seenFrom: currentURL) else {
            return .missingLocation
        }
        guard let url = URL(string: target.text) else { return .missingLocation }
        guard isWeb(url.scheme) else { return .unsupported(url: url) }
        guard let host = url.host, !host.isEmpty, URIPort(authority: target.authority ?? "") != .impossible
        else { return .missingLocation }
        let (newMethod, keepsBody) = request(method, after: status)
        return .to(
            url: url, method: newMethod, keepsBody: keepsBody, sameOrigin: areSameOrigin(url, currentURL))
    }

    /// Whether scheme, host and port are the same (RFC 6454 §5). User names and passwords in the URL do not
    /// matter.
    package static func areSameOrigin(_ left: URL, _ right: URL) -> Bool {
        left.scheme?.lowercased() == right.scheme?.lowercased()
            && left.host?.lowercased() == right.host?.lowercased()
            && port(left) == port(right)
    }

    /// A response with this status has the request sent to where its Location says.
    package static func isRedirect(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }

    // MARK: The target

    private static func target(of location: String, seenFrom currentURL: URL) -> URIReference? {
        let reference = URIReference(mending: location)
        if reference.text.isEmpty { return nil }
        let base = URIReference(currentURL.absoluteString)
        var target = reference.resolved(against: base)
        // RFC 9110 §10.2.2: the fragment is kept across the redirect, unless the Location has its own.
        target.fragment = reference.fragment ?? base.fragment
        return target
    }

    private static func isWeb(_ scheme: String?) -> Bool {
        let scheme = scheme?.lowercased()
        return scheme == "http" || scheme == "https"
    }

    private static func port(_ url: URL) -> Int? {
        if let port = url.port { return port }
        switch url.scheme?.lowercased() {
        case "http": return 80
        case "https": return 443
        default: return nil
        }
    }

    // MARK: The method

    /// 301 and 302 were meant to keep the method, but every client since the first ones turns POST into GET;
    /// 303 was introduced to require that, 307 and 308 to forbid it.
    private static func request(_ method: String, after status: Int) -> (method: String, keepsBody: Bool) {
        switch status {
        case 303 where method == "HEAD": ("HEAD", false)
        case 303: ("GET", false)
        case 301 where method == "POST", 302 where method == "POST": ("GET", false)
        default: (method, true)
        }
    }
}

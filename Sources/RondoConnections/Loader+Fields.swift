internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

// Fields that are ours and not the request's: cookies, and what servers ask to be remembered of them.

extension Loader {
    /// The fields of this exchange that the request does not have.
    func ownFields(of request: URLRequest) -> [(name: String, value: String)] {
        cookieFields(of: request) + cacheFields(of: request)
    }

    func cookieFields(of request: URLRequest) -> [(name: String, value: String)] {
        guard let cookies = jar?.fieldValue(for: request) else { return [] }
        return [("Cookie", cookies)]
    }

    /// Every response is looked at, those that send the request elsewhere too.
    func noteFields(_ head: ResponseHead) {
        if head.fields.has("Set-Cookie") { jar?.receive(head.fields, for: state.lastSent) }
        guard head.fields.has("Strict-Transport-Security"), let url = state.lastSentURL,
            url.scheme?.lowercased() == "https", isServerVerified
        else { return }
        TransportSecurity.receive(head.fields, from: url)
    }

    /// By TLS without any error (RFC 6797 §8.1). Of what somebody lets through nobody knows who has sent it.
    private var isServerVerified: Bool {
        guard let tls = connection?.settings.values.tls, let link = exchange?.link else { return false }
        return tls.verification == .full && tls.trustHandler == nil && !link.isUnverified
    }

    private var jar: CookieJar? { connection?.settings.values.cookieStorage.map(CookieJar.init) }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

// Fields that are ours and not the request's: cookies, and what servers ask to be remembered of them.

extension Loader {
    /// Sets the cookies for `request`.
    func setCookies(of request: LoadRequest, in fields: inout HeaderFields) {
        guard let cookies = jar?.fieldValue(for: request.value) else { return }
        fields.set(name: "Cookie", value: cookies)
    }

    /// Every response is looked at, those that send the request elsewhere too.
    ///
    /// Cookies are kept of a server that was let through as well (rule UC-57 knows no exception, nor do browsers):
    /// who lets a server of its own through wants to be logged in there.
    func noteFields(_ head: ResponseHead) {
        if head.fields.has("Set-Cookie") { receiveCookies(head.fields) }
        guard head.fields.has("Strict-Transport-Security"), state.lastSent.isSecure,
            let url = state.lastSent.url, exchange?.isPeerVerified ?? false
        else { return }
        TransportSecurity.receive(head.fields, from: url)
    }

    /// Whether the request has to wait until its cookies can be read, which is nearly never: they have to be read from
    /// the disk first, or a thread is bringing others to where the program sees them.
    func mustWaitForCookies(_ request: LoadRequest) -> Bool {
        guard request.address != nil, request.value.httpShouldHandleCookies, let jar else { return false }
        let isReady = jar.store.isReady {
            { [self] in
                shared.withLock { $0.hasCookies = true }
                wakeUp()
            }
        }
        if !isReady { madeRare.waitingForCookies = request }
        return !isReady
    }

    /// Goes on with the request that waited, if its cookies are there.
    func sendIfCookiesHaveCome() {
        guard let request = rare?.waitingForCookies else { return }
        let hasCome = shared.withLock { shared in
            defer { shared.hasCookies = false }
            return shared.hasCookies
        }
        guard hasCome || state.isEnded else { return }
        rare?.waitingForCookies = nil
        if !state.isEnded { sendOrAnswer(request) }
    }

    private func receiveCookies(_ fields: HeaderFields) {
        let isStoring = jar?.receive(fields, for: state.lastSent.value) {
            // Before anybody can have called what is handed out.
            shared.withLock { $0.stores += 1 }
            return { [self] in
                let isLast = shared.withLock { shared in
                    shared.stores -= 1
                    return shared.stores == 0
                }
                if isLast { wakeUp() }
            }
        }
        // The end of the load waits for that.
        if isStoring ?? false { hasStored = true }
    }

    /// The server is by TLS, and somebody has let it through in spite of its certificate. Of what it says nobody
    /// knows who has said it: it is not remembered for loads that have let nobody through (RFC 6797 §8.1 for HSTS;
    /// browsers keep no such response either).
    var isServerLetThrough: Bool {
        guard state.lastSent.isSecure, let exchange else { return false }
        return !exchange.isPeerVerified
    }

    private var jar: CookieJar? { settings.cookieStore.map(CookieJar.init) }
}

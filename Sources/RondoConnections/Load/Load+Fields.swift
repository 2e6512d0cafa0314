internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

// Fields that are not the request's own: cookies, what the cache asks, and what servers want to be remembered.

extension Load {
    var nameInRunLoops: String? { client?.nameInRunLoops }
    var onlyQueue: SharedQueue? { registration.onlyQueue }
    func forEachQueue(_ body: (SharedQueue) -> Void) { registration.forEachQueue(body) }
    func isAtOrigin(_ address: WebAddress) -> Bool { state.isAtOrigin(address) }
    func noteSent(_ fields: HeaderFields) { cache?.noteSent(fields) }

    func addFields(of request: LoadRequest, to fields: inout HeaderFields) {
        setCookies(of: request, in: &fields)
        cache?.addFields(of: request, to: &fields)
    }

    private func setCookies(of request: LoadRequest, in fields: inout HeaderFields) {
        guard let cookies = jar?.fieldValue(for: request) else { return }
        fields.set(name: "Cookie", value: cookies)
    }

    /// The fields as they would be sent.
    func outgoingFields(of request: LoadRequest) -> HeaderFields {
        do throws(LoadFailure) {
            let outgoing = try OutgoingRequest(request, omittedFields: settings.values.omittedFields) {
                _, _, fields in setCookies(of: request, in: &fields)
            }
            return outgoing.head.fields
        } catch {
            // A request that cannot be sent says so where it is sent.
            return HeaderFields()
        }
    }

    /// Every response is looked at, those that send the request elsewhere too.
    ///
    /// Cookies are kept of a server that was let through as well (rule UC-57 knows no exception, nor do browsers): a
    /// user who lets a server through wants to be logged in there.
    func noteFields(of head: ResponseHead, _ origin: ResponseOrigin) {
        if head.fields.has("Set-Cookie") { receiveCookies(head.fields) }
        guard head.fields.has("Strict-Transport-Security"), state.lastSent.isSecure,
            let url = state.lastSent.url, origin.isVerified
        else { return }
        KnownHSTSHosts.receive(head.fields, from: url)
    }

    private func receiveCookies(_ fields: HeaderFields) {
        _ = jar?.receive(fields, for: state.lastSent) {
            // Before what is handed out can be called.
            beginStoring()
            return { [self] in endStoring() }
        }
    }

    /// Whether the request has to wait until its cookies can be read, which is nearly never: they have to be read from
    /// the disk first, or a thread is bringing others to where the program sees them.
    func mustWaitForCookies(_ request: LoadRequest) -> Bool {
        guard request.address != nil, request.handlesCookies, let jar else { return false }
        return !jar.store.isReady(orTell: { tellOfCookies() })
    }

    private func tellOfCookies() -> @Sendable () -> Void {
        { [self] in
            shared.withLock { $0.hasCookies = true }
            wakeUp()
        }
    }

    private var jar: CookieJar? { settings.values.cookieStore.map(CookieJar.init) }

    // MARK: - Within the call that tells of a response

    /// The codings of its content, in the order in which they were applied.
    var contentCodings: [ContentCoding] { content.codings }

    /// Has only so many of them undone, those that were applied last.
    func undoCodings(_ count: Int) {
        do throws(LoadFailure) {
            try content.undoCodings(count)
        } catch {
            perform(state.failed(error))
        }
    }
}

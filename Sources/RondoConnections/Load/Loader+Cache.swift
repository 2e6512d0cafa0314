internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import Synchronization

// What the cache has to do with a load, step by step: before a request is sent, when the response's head is
// here, when it fails, and when all is here. What is kept and reused is decided by `CacheRules`; the answers
// of the cache take the same way to the delegate as those of a server (rule UC-55).

extension Loader {
    // MARK: - Before the request is sent

    /// Answers `request` from the cache, or fails it, where that is what its policy wants.
    ///
    /// - Returns: False if the request is to be sent.
    func isAnsweredByCache(_ request: LoadRequest) -> Bool {
        caching = nil
        if ProtocolRegistry.accepting(request.value) != nil { return isProtocolAnsweredByCache(request) }
        guard request.address != nil else { return false }
        let policy = RondoHTTP.CachePolicy(request.value.cachePolicy)
        guard let cache = settings.cache, let caching = CacheLoad(request, cache, policy)
        else {
            guard policy == .cacheOnly else { return false }
            perform(state.failed(.notInCache))
            return true
        }
        if policy != .reload, policy != .reloadEndToEnd {
            caching.found = caching.store.find(
                request, mayOverlook: policy == .protocolRules, fields: { outgoingFields(of: request) })
        }
        self.caching = caching
        // Of these two there is nothing to decide.
        if policy == .reload || policy == .reloadEndToEnd { return false }
        return decide(caching)
    }

    private func decide(_ caching: CacheLoad) -> Bool {
        // Without an entry the fields do not matter, but for only-if-cached.
        let fields =
            caching.found == nil
            ? Self.cacheControl(of: caching.request) : outgoingFields(of: caching.request)
        let decision = CacheRules.decide(
            caching.policy, request: fields, entry: caching.found?.entry, now: Date())
        switch decision {
        case .load:
            return false
        case .revalidate:
            self.caching?.isRevalidating = true
            return false
        case .fail:
            perform(state.failed(.notInCache))
        case .use:
            deliverFound(caching.found)
        case .useAndRevalidate:
            CacheRefresh.begin(caching.request.value, settings.values)
            deliverFound(caching.found)
        }
        return true
    }

    /// A protocol of the program knows its own rules: it is handed what is kept, and says whether that is valid.
    /// The policies that ask nobody are kept here.
    private func isProtocolAnsweredByCache(_ request: LoadRequest) -> Bool {
        let policy = RondoHTTP.CachePolicy(request.value.cachePolicy)
        if let cache = settings.cache, request.method == "GET" {
            let caching = CacheLoad(ofProtocol: request, cache, policy)
            switch policy {
            case .reload, .reloadEndToEnd: break
            case .protocolRules, .revalidate: caching.kept = caching.store.find(ofProtocol: request)
            case .cacheElseLoad, .cacheOnly:
                if let kept = caching.store.find(ofProtocol: request) {
                    deliverKept(kept)
                    return true
                }
            }
            self.caching = caching
        }
        guard policy == .cacheOnly else { return false }
        perform(state.failed(.notInCache))
        return true
    }

    private static func cacheControl(of request: LoadRequest) -> HeaderFields {
        guard let value = request.value.value(forHTTPHeaderField: "Cache-Control") else {
            return HeaderFields()
        }
        return HeaderFields([("Cache-Control", value)])
    }

    /// The fields as they would be sent: Vary may name any of them.
    private func outgoingFields(of request: LoadRequest) -> HeaderFields {
        let omitted = settings.values.omittedFields
        do throws(LoadFailure) {
            let outgoing = try OutgoingRequest(request, omittedFields: omitted) { _, _, fields in
                self.setCookies(of: request, in: &fields)
            }
            return outgoing.head.fields
        } catch {
            // A request that cannot be sent says so where it is sent.
            return HeaderFields()
        }
    }

    /// Sets the fields by which the server is asked about an entry, or caches on the way are told to ask.
    func setCacheFields(of request: LoadRequest, in fields: inout HeaderFields) {
        guard let caching else { return }
        if caching.isRevalidating {
            for (name, value) in caching.found?.entry.conditions ?? [] {
                fields.set(name: name, value: value)
            }
        }
        for (name, value) in CacheRules.endToEndFields(caching.policy)
        where request.value.value(forHTTPHeaderField: name) == nil {
            fields.set(name: name, value: value)
        }
    }

    /// The request is on its way with these fields.
    func noteSent(_ fields: HeaderFields) {
        guard caching != nil else { return }
        caching?.fields = fields
        caching?.sentAt = Date()
    }

    // MARK: - The head of the response

    /// Looks at a response's head: at a 304 that confirms what is kept, and at an error that it stands in
    /// for.
    ///
    /// - Returns: True if the response is none for anybody else.
    func isTakenByCache(_ head: ResponseHead) -> Bool {
        invalidate(by: head)
        guard let caching, let found = caching.found else { return false }
        if caching.isRevalidating, head.status == 304 {
            let isLetThrough = isServerLetThrough
            disposeOfExchange()
            confirm(found, by: head, forOthers: !isLetThrough)
            return true
        }
        if head.status >= 500, mayStandIn(for: head.status) {
            disposeOfExchange()
            deliverFound(found)
            return true
        }
        return false
    }

    /// What is kept is still right, as the server says.
    ///
    /// - Parameter forOthers: Whether it is fresh for other loads as well.
    private func confirm(_ found: FoundResponse, by head: ResponseHead, forOthers: Bool) {
        guard let caching else { return }
        let renewed = found.entry.freshened(by: head, requestedAt: caching.sentAt, receivedAt: Date())
        guard let renewed, let confirmed = found.confirmed(by: head, renewed) else {
            // It speaks of another response: once more, without conditions.
            self.caching?.found = nil
            self.caching?.isRevalidating = false
            return send(state.request, mayReuse: true)
        }
        if forOthers {
            store(caching.store.store(found, confirmed: renewed, confirmed, for: caching.request))
        }
        deliverKept(confirmed)
    }

    /// Whether what is kept may answer for a server that failed, or was not reached where `status` is nil.
    func mayStandIn(for status: Int?) -> Bool {
        guard let caching, let entry = caching.found?.entry else { return false }
        return CacheRules.mayStandIn(
            entry, for: status, request: caching.fields, policy: caching.policy, now: Date())
    }

    /// The server failed: what is kept answers, if it may.
    ///
    /// - Returns: False if it may not.
    func isReplacedByCache() -> Bool {
        guard !state.deliversBody, let found = caching?.found, mayStandIn(for: nil) else { return false }
        deliverFound(found)
        return true
    }

    /// What is kept is the answer, without a question to the server.
    private func deliverFound(_ found: FoundResponse?) {
        guard let found, let response = found.response(at: Date()) else { return }
        deliverKept(response, found.content)
    }

    private func deliverKept(_ kept: CachedURLResponse) { deliverKept(kept.response, kept.data) }

    private func deliverKept(_ response: URLResponse, _ content: Data) {
        caching = nil
        perform(state.received(response))
        guard state.deliversBody else { return }
        pipe = ContentPipe(whole: content)
        drainPipe()
    }

    private func invalidate(by head: ResponseHead) {
        let request = state.lastSent
        guard request.method != "GET", let url = request.url,
            let cache = settings.cache
        else { return }
        for url in CacheRules.invalidated(by: head, method: request.method, url: url) {
            let store = CacheLoad.store(cache)
            // Behind what is being stored: it was fetched before.
            if CacheWriter.shared.isBusy { waitForStore { store.remove(url) } } else { store.remove(url) }
        }
    }

    // MARK: - Storing

    /// A response is about to be delivered: is it to be kept?
    ///
    /// - Parameter bodyLength: Nil: it is not known.
    func beginStoring(_ response: URLResponse, _ head: ResponseHead, bodyLength: Int64?) {
        guard let caching else { return }
        if let bodyLength, pipe == nil, calls == nil, spares(.willCacheResponse),
            caching.store.hasJustStored(head, size: bodyLength, for: caching.request)
        {
            self.caching = nil
            return store(.isWritten)
        }
        let isStored =
            !writesFile && rare?.pipeHead == nil && CacheRules.mayStore(head, to: caching.fields)
            && !isServerLetThrough
            && (caching.isOfUse(head) || mayAskAboutCaching)
            && caching.begin(storing: response, head, bodyLength: bodyLength)
        if !isStored { self.caching = nil }
    }

    /// Whether the delegate may have a word about what is stored, as far as is known.
    private var mayAskAboutCaching: Bool { !(delegateClass?.hasDefault(of: .willCacheResponse) ?? true) }

    /// A protocol of the program has a response, and says whether it may be kept. Of several none is.
    func beginStoring(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        guard let caching, caching.isOfProtocol else { return }
        let isGood = (response as? HTTPURLResponse).map { 200..<300 ~= $0.statusCode } ?? true
        caching.storagePolicy = policy
        let isStored =
            policy != .notAllowed && isGood && !writesFile && caching.response == nil
            && caching.begin(storing: response, nil, bodyLength: nil)
        if !isStored { self.caching = nil }
    }

    /// A piece of the content.
    func noteContent(_ data: Data) {
        guard let caching, caching.isStoring else { return }
        if !caching.add(data) { self.caching = nil }
    }

    /// All is here: the delegate is asked what is to be stored (rules UC-53 and UC-54).
    ///
    /// - Returns: False if there is nothing to ask about, or the answer is known.
    func isAskedAboutCaching() -> Bool {
        // With a queue the question comes after what waits there, which may cancel the load.
        if let caching, caching.isStoring, calls == nil, spares(.willCacheResponse) {
            self.caching = nil
            store(caching.storeAsReceived())
            return false
        }
        guard let proposal = caching?.propose() else { return false }
        deliver(.willCache(proposal))
        return true
    }

    /// What the delegate says.
    func answeredCaching(_ answer: CachedURLResponse?) {
        guard let caching, caching.proposal != nil else { return }
        self.caching = nil
        // Now it is known whether there was anybody to ask.
        if let answer, caching.isOfUse || mayAskAboutCaching { store(caching.store(answer)) }
        finish()
    }

    /// Has a response stored: here, or where that takes its time by `CacheWriter`, while this loop serves others. The
    /// delegate hears of the end when it is done, and what was stored is found then. Where too much waits to be stored, it is
    /// not.
    private func store(_ decision: CacheDecision) {
        switch decision {
        case .nothing: break
        case .isWritten: if CacheWriter.shared.isBusy { waitForStore {} }
        // What waits is older, and must not come later.
        case .write(let write) where write.takesTime || CacheWriter.shared.isBusy:
            if CacheWriter.shared.isFull { return }
            // Also if the load is cancelled by then: who has loaded the same counts on it.
            waitForStore { write() }
            write.noteAsWritten()
        case .write(let write):
            write()
            write.noteAsWritten()
        }
    }

    private func waitForStore(_ body: @escaping @Sendable () -> Void) {
        hasStored = true
        shared.withLock { $0.stores += 1 }
        CacheWriter.shared.add { [self] in
            body()
            let isLast = shared.withLock { shared in
                shared.stores -= 1
                return shared.stores == 0
            }
            if isLast { wakeUp() }
        }
    }

    /// Whether the end has to wait for what is being stored.
    var isStoring: Bool {
        guard hasStored else { return false }
        return shared.withLock { $0.stores > 0 }
    }
}

/// Brings an entry up to date that was used although it was stale (RFC 5861 §3): a load of its own, on the
/// loader, of which nobody hears.
private final class CacheRefresh: NSObject, URLConnectionDataDelegate {
    /// One at a time for each URL.
    private static let running = Mutex<Set<String>>([])

    private let url: String

    private init(_ url: String) { self.url = url }

    static func begin(_ request: URLRequest, _ configuration: URLConnection.Configuration) {
        guard let url = request.url?.absoluteString, running.withLock({ $0.insert(url).inserted }) else {
            return
        }
        var request = request
        request.cachePolicy = .reloadRevalidatingCacheData
        let connection = URLConnection(
            request: request, delegate: CacheRefresh(url), startImmediately: false)
        var configuration = configuration
        configuration.onDiagnostic = nil
        connection?.configuration = configuration
        connection?.driveOnLoader()
        connection?.start()
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { end() }
    func connection(_ connection: URLConnection, didFailWithError error: any Error) { end() }

    private func end() { Self.running.withLock { _ = $0.remove(url) } }
}

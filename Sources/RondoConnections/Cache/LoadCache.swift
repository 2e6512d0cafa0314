internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The decisions of the cache in a load: before a request is sent, when the head of a response has come, when
/// the server fails, and when the response is complete.
///
/// `CacheRules` says which responses may be stored and used. This type applies those rules and stores
/// responses; its owner sends requests and delivers responses.
struct LoadCache: ~Copyable {
    /// How a request is to be answered.
    enum Decision {
        /// A server, or a protocol of the program, answers it.
        case send
        /// A stored response answers it.
        case use(URLResponse, Data)
        case fail(LoadFailure)
    }

    /// The consequence of a response's head for the stored response.
    enum HeadDecision {
        /// The response is delivered like any other.
        case deliver
        /// The stored response is used: the server has confirmed it, or has failed.
        case use(URLResponse, Data)
        /// The server's answer is about another response than the stored one: the request is sent again
        /// without conditions.
        case askWithoutConditions
    }

    /// How storing changes the end of the load.
    enum End {
        /// The delegate is shown the response that is to be stored (rule UC-54).
        case ask(CachedURLResponse)
        case nothing
    }

    /// Whether the load's body goes to a file; such a body is never stored.
    private let isDownload: Bool
    /// The state of the current request.
    private var current = CachedRequestState()
    /// Whether the last response may be used for other loads: its server was not accepted in spite of its
    /// certificate.
    private var isVerified = false

    init(isDownload: Bool) { self.isDownload = isDownload }

    /// Call it when the load is over, or when something other than the cache answers it.
    mutating func forget() { current.end() }

    // MARK: - Before the request is sent

    /// - Parameters:
    ///   - isForProtocol: Whether a protocol of the program loads the request.
    ///   - fields: The request's fields as they would be sent: Vary may name any of them.
    ///   - isAtOrigin: Whether an address belongs to the origin that the settings were made for.
    mutating func decide(
        _ request: LoadRequest, _ settings: LoadSettings, isForProtocol: Bool, fields: () -> HeaderFields,
        isAtOrigin: (WebAddress) -> Bool
    ) -> Decision {
        current.end()
        if isForProtocol { return decideForProtocol(request, settings) }
        guard let address = request.address else { return .send }
        let policy = RondoHTTP.CachePolicy(request.value.cachePolicy)
        guard settings.values.sharesContent, let store = settings.values.store(),
            current.begin(
                request, store, policy, additionalFields: settings.values.additionalFields)
        else {
            return policy == .cacheOnly ? .fail(.notInCache) : .send
        }
        if policy == .reload || policy == .reloadEndToEnd {
            current.older = .possible
            return .send
        }
        let found = store.find(request, mayOverlook: policy == .protocolRules, fields: fields)
        // Without an entry no field matters except for only-if-cached.
        let relevant = found == nil ? Self.cacheControl(of: request, settings) : fields()
        let decision = CacheRules.decide(policy, request: relevant, entry: found?.entry, now: Date())
        current.hold(found, isToBeConfirmed: decision == .revalidate)
        switch decision {
        case .load:
            if let found, found.entry.matches(relevant) { current.older = .possible }
            return .send
        case .revalidate:
            current.older = .possible
            return .send
        case .fail: return .fail(.notInCache)
        case .use: return use(found)
        case .useAndRevalidate:
            settings.refresh(request.value, atOrigin: isAtOrigin(address))
            return use(found)
        }
    }

    /// A protocol of the program has its own rules: it gets the stored response, and decides whether that is
    /// valid. Only the policies that exclude the server, and so the protocol, are applied here.
    private mutating func decideForProtocol(_ request: LoadRequest, _ settings: LoadSettings) -> Decision {
        let policy = RondoHTTP.CachePolicy(request.value.cachePolicy)
        if request.method == "GET", let store = settings.values.store() {
            switch policy {
            case .reload, .reloadEndToEnd: current.begin(ofProtocol: request, store, policy)
            case .protocolRules, .revalidate:
                current.begin(ofProtocol: request, store, policy)
                current.offer(store.find(ofProtocol: request))
            case .cacheElseLoad, .cacheOnly:
                if let stored = store.find(ofProtocol: request) { return .use(stored.response, stored.data) }
                current.begin(ofProtocol: request, store, policy)
            }
        }
        return policy == .cacheOnly ? .fail(.notInCache) : .send
    }

    /// The stored response that a protocol of the program may use. Nil from the second call on.
    mutating func takeStored() -> CachedURLResponse? { current.takeOffered() }

    private static func cacheControl(of request: LoadRequest, _ settings: LoadSettings) -> HeaderFields {
        let name = "Cache-Control"
        var fields = HeaderFields()
        if let own = request.value.value(forHTTPHeaderField: name) { fields.append(name: name, value: own) }
        for field in settings.values.additionalFields
        where field.name.caseInsensitiveCompare(name) == .orderedSame {
            fields.append(name: name, value: field.value)
        }
        return fields
    }

    /// The fields that ask the server to confirm the stored response, or that tell caches on the way to do
    /// so. The latter go with any request of that policy, unless the program has set fields of these names.
    func fields(of request: LoadRequest, _ settings: LoadSettings) -> [(name: String, value: String)] {
        var conditions: [(name: String, value: String)] = []
        if let candidate = current.candidate, candidate.isToBeConfirmed {
            conditions = candidate.found.entry.conditions
        }
        let policy = current.policy ?? RondoHTTP.CachePolicy(request.value.cachePolicy)
        let endToEnd = CacheRules.endToEndFields(policy)
        if endToEnd.isEmpty { return conditions }
        return conditions
            + endToEnd.filter { name, _ in
                request.value.value(forHTTPHeaderField: name) == nil
                    && !settings.values.additionalFields.contains {
                        $0.name.caseInsensitiveCompare(name) == .orderedSame
                    }
            }
    }

    /// Call it when the request has been sent with these fields.
    mutating func noteSent(_ fields: HeaderFields) { current.noteSent(fields) }

    // MARK: - The head of the response

    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - isVerified: Whether the response may be used for other loads too.
    ///   - fields: The request's fields as they would be sent; called only for HEAD.
    ///   - waiter: The load, which ends only when its stores are done; of all methods below.
    mutating func received(
        _ head: ResponseHead, to request: LoadRequest, _ settings: LoadSettings, isVerified: Bool,
        fields: () -> HeaderFields, for waiter: any StoreWaiter
    ) -> HeadDecision {
        self.isVerified = isVerified
        if request.method == "HEAD" {
            compareStored(with: head, request, settings, fields: fields, for: waiter)
        } else if request.method != "GET" {
            invalidate(by: head, request, settings, for: waiter)
        }
        guard let candidate = current.candidate else { return .deliver }
        if candidate.isToBeConfirmed, head.status == 304 {
            return confirm(candidate.found, by: head, for: waiter)
        }
        if head.status >= 500, mayServeStale(candidate.found.entry, for: head.status),
            case .use(let response, let data) = use(candidate.found)
        {
            return .use(response, data)
        }
        return .deliver
    }

    /// Uses the stored response, which the server has confirmed.
    private mutating func confirm(
        _ found: FoundResponse, by head: ResponseHead, for waiter: any StoreWaiter
    ) -> HeadDecision {
        let renewed = found.entry.freshened(
            by: head, to: current.fields, requestedAt: current.sentAt, receivedAt: Date())
        guard let renewed, let confirmed = found.confirmed(by: head, renewed) else {
            current.dropCandidate()
            return .askWithoutConditions
        }
        if isVerified {
            // The 304 may forbid storing (no-store). It changes the fields only: whatever its status, the
            // response was stored.
            if CacheRules.mayStore(ResponseHead(status: 200, fields: renewed.fields), to: nil) {
                // The stored response is fresh for other loads as well.
                let decision = current.store(found, confirmed: renewed, confirmed)
                store(decision, for: waiter)
            } else {
                current.older = .outdated
                endWithoutStoring(for: waiter)
            }
        }
        current.end()
        return .use(confirmed.response, confirmed.data)
    }

    /// Answers the request by the stored response, if that may be used although it is stale: the server was
    /// not reached.
    mutating func useStaleResponse() -> (URLResponse, Data)? {
        guard let found = current.candidate?.found, mayServeStale(found.entry, for: nil),
            case .use(let response, let data) = use(found)
        else { return nil }
        return (response, data)
    }

    /// - Parameter status: The status of the server's error; nil if the server was not reached.
    private func mayServeStale(_ entry: CacheEntry, for status: Int?) -> Bool {
        guard let policy = current.policy else { return false }
        return CacheRules.mayServeStale(
            entry, for: status, request: current.fields ?? HeaderFields(), policy: policy, now: Date())
    }

    /// Answers the request by the stored response.
    private mutating func use(_ found: FoundResponse?) -> Decision {
        guard let found, let response = found.response(at: Date()) else { return .fail(.notInCache) }
        current.end()
        return .use(response, found.content)
    }

    private func invalidate(
        by head: ResponseHead, _ request: LoadRequest, _ settings: LoadSettings, for waiter: any StoreWaiter
    ) {
        guard let url = request.url, let store = settings.values.store() else { return }
        for url in CacheRules.invalidated(by: head, method: request.method, url: url) {
            remove(url, from: store, for: waiter)
        }
    }

    /// Removes the stored response to GET if a response to HEAD shows that the server has another one by now.
    private func compareStored(
        with head: ResponseHead, _ request: LoadRequest, _ settings: LoadSettings,
        fields: () -> HeaderFields, for waiter: any StoreWaiter
    ) {
        guard isVerified, head.status == 200, settings.values.sharesContent, let url = request.url,
            let store = settings.values.store(),
            let entry = store.findEntry(request, fields: fields),
            CacheRules.outdates(entry, byHead: head), entry.matches(fields())
        else { return }
        remove(url, from: store, for: waiter)
    }

    private func remove(_ url: URL, from store: any ResponseStore, for waiter: any StoreWaiter) {
        // A removal follows the responses that wait to be stored, because those were fetched before, and is
        // made before those that come later.
        if store.mayBlock { waiter.store { store.remove(url) } } else { store.remove(url) }
    }

    // MARK: - Storing

    /// Decides whether a response that is about to be delivered will be stored, and prepares for that.
    ///
    /// - Parameters:
    ///   - bodyLength: Nil if it is not known.
    ///   - isPlain: The body is the content, and the delegate is called on the loop.
    ///   - hasParts: Whether the body has several parts; such a body is not stored.
    mutating func beginStoring(
        _ response: URLResponse, _ head: ResponseHead, bodyLength: Int64?, isPlain: Bool, hasParts: Bool,
        _ defaults: DelegateDefaults?, for waiter: any StoreWaiter
    ) {
        guard current.isInProgress else { return }
        if let bodyLength, isPlain, defaults.usesDefault(of: .willCacheResponse),
            current.hasJustStored(head, size: bodyLength)
        {
            current.end()
            return store(.isWritten, for: waiter)
        }
        if current.older != .none {
            current.older = isVerified && CacheRules.outdates(head) ? .outdated : .possible
        }
        let mayStore =
            !isDownload && !hasParts && isVerified && CacheRules.mayStore(head, to: current.fields)
        let isOfUse = mayStore && current.isOfUse(head)
        let isStored =
            mayStore && (isOfUse || Self.mayAsk(defaults))
            && current.begin(storing: response, head, bodyLength: bodyLength, isOfUse: isOfUse)
        if !isStored { current.refuse() }
    }

    /// Prepares to store the response of a protocol of the program, which says whether it may be stored. If
    /// the protocol delivers several responses, none is stored.
    mutating func beginStoring(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        guard current.isOfProtocol else { return }
        let isGood = (response as? HTTPURLResponse).map { 200..<300 ~= $0.statusCode } ?? true
        let isStored =
            policy != .notAllowed && isGood && !isDownload && current.incoming == nil
            && current.begin(storing: response, nil, bodyLength: nil, isOfUse: true, policy)
        if !isStored { current.end() }
    }

    /// Collects a piece of the content.
    mutating func received(_ content: Data) {
        guard let incoming = current.incoming else { return }
        if !incoming.add(content) { current.refuse() }
    }

    /// Call it when the response is complete.
    ///
    /// - Parameter callsOnLoop: Whether the delegate is called on the loop. With a queue it is asked after
    ///   the calls that wait there, and one of these may cancel the load.
    mutating func receivedEnd(
        callsOnLoop: Bool, _ defaults: DelegateDefaults?, for waiter: any StoreWaiter
    ) -> End {
        guard let incoming = current.incoming else {
            endWithoutStoring(for: waiter)
            return .nothing
        }
        if callsOnLoop, defaults.usesDefault(of: .willCacheResponse) {
            let decision = current.storeAsReceived()
            store(decision, for: waiter)
            current.end()
            return .nothing
        }
        return incoming.propose().map(End.ask) ?? .nothing
    }

    /// Takes the delegate's reply to `End.ask`: the response to store; nil if none.
    mutating func replied(
        _ approved: CachedURLResponse?, _ defaults: DelegateDefaults?, for waiter: any StoreWaiter
    ) {
        guard let incoming = current.incoming, incoming.proposal != nil else { return }
        // By now it is known whether the delegate implements the method.
        guard let approved, approved.storagePolicy != .notAllowed, incoming.isOfUse || Self.mayAsk(defaults)
        else { return endWithoutStoring(for: waiter) }
        let decision = current.store(approved)
        store(decision, for: waiter)
        current.end()
    }

    /// The response is complete and is not stored: an older one must not answer in its place.
    private mutating func endWithoutStoring(for waiter: any StoreWaiter) {
        let removal = current.removal
        current.end()
        // A program may ask again and again for a response that is never stored.
        guard let (store, request) = removal, store.mayHave(request), let url = request.url else { return }
        remove(url, from: store, for: waiter)
    }

    /// Whether the delegate may want to change or refuse the stored response, as far as is known.
    private static func mayAsk(_ defaults: DelegateDefaults?) -> Bool {
        !(defaults?.contains(.willCacheResponse) ?? true)
    }

    /// Stores a response at once or, if that takes time, by `CacheWriter`, while this loop serves other
    /// loads. The delegate is told of the end when the response is stored, and a look-up finds it then. If
    /// too many responses wait to be stored, this one is not stored, and an older one is removed.
    private mutating func store(_ decision: CacheDecision, for waiter: any StoreWaiter) {
        switch decision {
        case .nothing: break
        case .isWritten: if CacheWriter.shared.isBusy { waiter.store {} }
        // Responses that wait were received earlier, and must be stored earlier.
        case .write(let write) where write.takesTime || CacheWriter.shared.isBusy:
            if CacheWriter.shared.isFull { return endWithoutStoring(for: waiter) }
            // The response is stored even if the load is cancelled by then: another load of the same response
            // relies on it.
            waiter.store(isResponse: true) { write.perform() }
            write.noteAsWritten()
        case .write(let write):
            write.perform()
            write.noteAsWritten()
        }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// Chooses what answers each request of one load (server, cache, protocol or local content), and holds the
/// current answer.
///
/// Used inside the gate of its load.
final class LoadAnswers {
    private let context: LoadContext
    /// The load's driver, which releases this object at the load's end.
    let owner: any ServerAnswerOwner & StoreWaiter
    private(set) var current: (any Answer)?
    /// The answer by servers, made for the first request that needs one and used for all later ones.
    private(set) var server: ServerAnswer?
    /// Also changed by `LoadDriver`, which hands it responses, content and replies.
    // Unchecked, inside the gate: see `Load`. With the checks of this and of `HeaderFields` bench-guard's
    // http.request takes up to 4 % more instructions.
    @exclusivity(unchecked) var cache: LoadCache
    /// Nil if metrics are not wanted.
    let transfers: LoadTransfers?

    init(
        for owner: any ServerAnswerOwner & StoreWaiter, _ context: LoadContext, isDownload: Bool
    ) {
        self.owner = owner
        self.context = context
        cache = LoadCache(isDownload: isDownload)
        transfers = context.startedAt.map { LoadTransfers(since: $0) }
    }

    var settings: LoadSettings { context.settings }

    // MARK: - Choosing

    /// Starts the answer to a request. The choice is made here alone: the cache, a protocol of the program,
    /// the URL itself (a file or data URL), or a server.
    func answer(_ request: LoadRequest, _ reason: SendReason) {
        guard reason.asksCache, !(context.upgrade?.isRequired ?? false) else {
            return answerByServer(request, mayReuse: reason.mayReuse)
        }
        let type = settings.values.protocols.accepting(request.value)
        switch cache.decide(
            request, settings, isForProtocol: type != nil, fields: { outgoingFields(of: request) },
            isAtOrigin: { owner.isAtOrigin($0) })
        {
        case .use(let response, let data): answerFromCache(response, data, to: request)
        case .fail(let failure): owner.received(.failed(failure))
        case .send:
            if let type {
                start(protocolAnswer(of: type), to: request)
            } else if request.address == nil, let url = request.url, LocalContent.canLoad(url) {
                answerFromURL(url, to: request)
            } else {
                answerByServer(request)
            }
        }
    }

    /// Answers with a stored response.
    func answerFromCache(_ response: URLResponse, _ data: Data, to request: LoadRequest) {
        // Ends the server's exchange first, so that its metrics come before those of the stored response.
        cancel()
        transfers?.answeredFromCache(response, to: request)
        start(LocalAnswer(response, data, for: owner), to: request)
    }

    private func protocolAnswer(of type: URLProtocol.Type) -> ProtocolAnswer {
        // The private mode of a synchronous request serves only Rondo's timers, so the protocol runs on the
        // loader. If the loader's own thread waits for the request, it serves nothing else until the end, and
        // the protocol starts at once.
        let isSynchronous = owner.modes.contains { $0.mode == .synchronousRequest }
        let loader = isSynchronous ? RunLoop.loader : nil
        return ProtocolAnswer(
            of: type, cached: cache.takeStored(), on: loader.flatMap { $0.isCurrent ? nil : $0 },
            modes: owner.modes, for: owner)
    }

    private func answerFromURL(_ url: URL, to request: LoadRequest) {
        do throws(LoadFailure) {
            start(LocalAnswer(try LocalContent(url), for: owner), to: request)
        } catch {
            owner.received(.failed(error))
        }
    }

    /// - Parameter mayReuse: The request may go over a kept connection.
    private func answerByServer(_ request: LoadRequest, mayReuse: Bool = true) {
        let server = self.server ?? ServerAnswer(first: request, for: owner, context, transfers)
        self.server = server
        start(server, to: request, mayReuse: mayReuse)
    }

    /// Starts an answer in place of the current one.
    private func start(_ answer: any Answer, to request: LoadRequest, mayReuse: Bool = true) {
        current.take()?.cancel()
        current = answer
        answer.start(
            AnswerRequest(
                request: request, cacheFields: cache.fields(of: request, settings), mayReuse: mayReuse))
    }

    // MARK: - The head of a response

    /// The consequence of a head for the load, after the cache has seen it.
    enum NextStep {
        case deliver
        /// The request is to be sent to the server once more, without conditions: the stored response does
        /// not fit this head.
        case askWithoutConditions
        /// Another answer has replaced this one, and delivers the response.
        case answeredAnew
    }

    /// - Parameter request: The request that was sent.
    func received(
        _ head: ResponseHead, from source: ResponseSource, to request: LoadRequest
    ) -> NextStep {
        switch cache.received(
            head, to: request, settings, isVerified: source.isTrustworthy(for: request),
            fields: { outgoingFields(of: request) }, for: owner)
        {
        case .deliver: return .deliver
        case .askWithoutConditions: return .askWithoutConditions
        case .use(let response, let data):
            answerFromCache(response, data, to: request)
            return .answeredAnew
        }
    }

    // MARK: - Ending

    /// Ends the current answer, without a further event.
    func cancel() { current.take()?.cancel() }

    /// Call it when the response is complete, and nothing more is to be sent.
    func end() {
        cancel()
        server?.closeBody()
    }

    /// Call it when the load is over, and has not left its loops yet.
    func close() {
        cancel()
        cache.forget()
        server.take()?.close()
    }

    // MARK: - Of the server

    var isByServer: Bool { server != nil && current === server }

    /// The request's fields as they would be sent to a server.
    private func outgoingFields(of request: LoadRequest) -> HeaderFields {
        do throws(LoadFailure) {
            var draft = try settings.draft(of: request) { owner.isAtOrigin($0) }
            settings.jar?.setField(for: request, in: &draft.fields)
            let outgoing = try OutgoingRequest.request(
                of: request, from: draft, omittedFields: settings.values.omittedFields)
            return outgoing.head.fields
        } catch {
            // The error is reported when the request is sent.
            return HeaderFields()
        }
    }
}

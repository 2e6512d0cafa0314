internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams
internal import Synchronization

// The request's body from a stream. It is sent as it comes; where it has to be sent again the delegate is
// asked for a new stream (rule UC-39), and one that has no such method gets what was kept meanwhile (UC-40).
//
// Whether a delegate has the method is known only once it was called, and it may be called only where it is
// due. So what is sent is kept until a delegate of that class was found to have the method, and from then on
// no more.

extension Loader {
    private static let classesWithMethod = Mutex<Set<ObjectIdentifier>>([])

    /// Sends `request` as soon as its body can be sent.
    func send(_ request: URLRequest, mayReuse: Bool) {
        if let type = ProtocolRegistry.accepting(request) { return startProtocol(type, for: request) }
        if let url = request.url, LocalContent.canLoad(url) { return startLocal(url) }
        guard let stream = request.httpBodyStream else {
            closeBody()
            return exchange(request, body: nil, mayReuse: mayReuse)
        }
        if let body, body.origin === stream {
            if body.isUntouched { return exchange(request, body: body, mayReuse: mayReuse) }
            waitingToSend = (request, mayReuse)
            deliver(.needNewBodyStream(request))
            return
        }
        exchange(request, body: useBody(stream, of: stream), mayReuse: mayReuse)
    }

    /// The delegate's answer to `.needNewBodyStream`; `.none` if it has no such method.
    func answeredBodyStream(_ answer: Foundation.InputStream??) {
        guard let (request, mayReuse) = waitingToSend, let origin = request.httpBodyStream else { return }
        waitingToSend = nil
        switch answer {
        case .none:
            guard let body, body.rewind() else { return perform(state.failed(.bodyStreamMissing)) }
            exchange(request, body: body, mayReuse: mayReuse)
        case .some(.none):
            noteMethod()
            perform(state.failed(.bodyStreamMissing))
        case .some(.some(let stream)):
            noteMethod()
            exchange(request, body: useBody(stream, of: origin), mayReuse: mayReuse)
        }
    }

    private func useBody(
        _ stream: Foundation.InputStream, of origin: Foundation.InputStream
    ) -> BodyStream {
        closeBody()
        let body = BodyStream(stream, of: origin, keeps: !isMethodKnown) { [weak self] in self?.wakeUp() }
        self.body = body
        return body
    }

    func closeBody() {
        body?.close()
        body = nil
    }

    // MARK: - The delegate's class

    private var delegateClass: ObjectIdentifier? {
        connection?.delegate?.data.map { ObjectIdentifier(type(of: $0)) }
    }

    private var isMethodKnown: Bool {
        guard let delegateClass else { return false }
        return Self.classesWithMethod.withLock { $0.contains(delegateClass) }
    }

    private func noteMethod() {
        guard let delegateClass else { return }
        Self.classesWithMethod.withLock { _ = $0.insert(delegateClass) }
    }

    // MARK: - Waiting

    func waitForBody() {
        isWaitingForBody = true
        guard let body, body.mustBePolled else { return }
        bodyTimer?.invalidate()
        bodyTimer = PlaceTimer(places, after: BodyStream.pollInterval, repeats: false) { [weak self] in
            self?.ring(.body)
        }
    }

    func waitForGoAhead() {
        guard goAheadTimer == nil, let seconds = connection?.settings.values.goAheadTimeout else { return }
        goAheadTimer = PlaceTimer(places, after: max(0, seconds), repeats: false) { [weak self] in
            self?.ring(.goAhead)
        }
    }

    func stopGoAheadTimer() {
        goAheadTimer?.invalidate()
        goAheadTimer = nil
    }

    /// A timer has fired: its work is done in a turn, because what comes of it is a delivery (rule UC-72).
    private func ring(_ alarm: Alarms) {
        shared.withLock { _ = $0.alarms.insert(alarm) }
        wakeUp()
    }
}

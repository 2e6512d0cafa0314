internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams
internal import Synchronization

// The request's body from a stream. It is sent as it comes; where it has to be sent again the delegate is
// asked for a new stream (rule UC-39), and one that has no such method gets what was kept meanwhile (UC-40).
//
// Whether a delegate has the method is known only once it was called, and it may be called only where it is
// due. So what is sent is kept until a delegate of that class was found to have the method, and from then on
// no more.

extension Loader {
    /// Sends `request` as soon as its body can be sent.
    func send(_ request: LoadRequest, mayReuse: Bool) {
        if let type = ProtocolRegistry.accepting(request.value) {
            return startProtocol(type, for: request.value)
        }
        if request.address == nil, let url = request.url, LocalContent.canLoad(url) { return startLocal(url) }
        guard let stream = request.value.httpBodyStream else {
            closeBody()
            return exchange(request, body: nil, mayReuse: mayReuse)
        }
        if let body, body.origin === stream {
            if body.isUntouched { return exchange(request, body: body, mayReuse: mayReuse) }
            madeRare.waitingToSend = (request, mayReuse)
            deliver(.needNewBodyStream(request.value))
            return
        }
        exchange(request, body: useBody(stream, of: stream), mayReuse: mayReuse)
    }

    /// The delegate's answer to `.needNewBodyStream`; `.none` if it has no such method.
    func answeredBodyStream(_ answer: Foundation.InputStream??) {
        guard let (request, mayReuse) = rare?.waitingToSend, let origin = request.value.httpBodyStream else {
            return
        }
        rare?.waitingToSend = nil
        switch answer {
        case .none:
            guard let body, body.rewind() else { return perform(state.failed(.bodyStreamMissing)) }
            exchange(request, body: body, mayReuse: mayReuse)
        case .some(.none):
            delegateClass?.noteBodyStreamMethod()
            perform(state.failed(.bodyStreamMissing))
        case .some(.some(let stream)):
            delegateClass?.noteBodyStreamMethod()
            exchange(request, body: useBody(stream, of: origin), mayReuse: mayReuse)
        }
    }

    private func useBody(
        _ stream: Foundation.InputStream, of origin: Foundation.InputStream
    ) -> BodyStream {
        closeBody()
        let body = BodyStream(stream, of: origin, keeps: !(delegateClass?.hasBodyStreamMethod ?? false)) {
            [weak self] in self?.wakeUp()
        }
        madeRare.body = body
        return body
    }

    // MARK: - Known before it is sent

    /// Where the answer to a challenge protects the body as well (`auth-int`, RFC 7616 §3.4.3) its hash is in the
    /// head: so the whole is read into the spool before any of it is sent.
    ///
    /// - Returns: False if that goes on: `exchange` comes again then.
    func isHashed(
        _ body: BodyStream, for request: LoadRequest, toProxy: Bool, mayReuse: Bool
    ) -> Bool {
        guard let rare else { return true }
        let wanted = [
            rare.serverAuthentication.protectingHash,
            toProxy ? rare.proxyAuthentication.protectingHash : nil,
        ]
        guard wanted.contains(where: { $0.map { body.digests[$0] == nil } ?? false }) else { return true }
        body.open(in: places)
        rare.hashing = (request, mayReuse)
        wakeUp()
        return false
    }

    /// A piece of it in a turn.
    func goOnHashing() {
        guard let rare, let (request, mayReuse) = rare.hashing, let body = rare.body else { return }
        let wanted = [rare.serverAuthentication.protectingHash, rare.proxyAuthentication.protectingHash]
            .compactMap { $0 }.first { body.digests[$0] == nil }
        guard let wanted else {
            rare.hashing = nil
            return exchange(request, body: body, mayReuse: mayReuse)
        }
        var piece = [UInt8](repeating: 0, count: RequestSender.pieceSize)
        var rest = RequestSender.maximumPerPass / piece.count
        while true {
            switch body.hash(by: wanted, piece: &piece) {
            case .done:
                return wakeUp()
            case .more:
                progressedAt = now
                rest -= 1
                if rest == 0 { return wakeUp() }
            case .notReady:
                return waitForBody()
            case .failed(let error):
                return perform(state.failed(.bodyStreamFailed(error as NSError)))
            case .lost:
                return perform(state.failed(.bodyStreamMissing))
            }
        }
    }

    func closeBody() {
        guard let rare else { return }
        rare.hashing = nil
        rare.body?.close()
        rare.body = nil
    }

    // MARK: - Waiting

    func waitForBody() {
        isWaitingForBody = true
        guard let body, body.mustBePolled else { return }
        let rare = madeRare
        rare.bodyTimer?.invalidate()
        rare.bodyTimer = PlaceTimer(places, after: BodyStream.pollInterval, repeats: false) { [weak self] _ in
            self?.ring(.body)
        }
    }

    func waitForGoAhead() {
        let rare = madeRare
        guard rare.goAheadTimer == nil else { return }
        let seconds = max(0, settings.values.goAheadTimeout)
        rare.goAheadTimer = PlaceTimer(places, after: seconds, repeats: false) { [weak self] _ in
            self?.ring(.goAhead)
        }
    }

    func stopGoAheadTimer() {
        rare?.goAheadTimer?.invalidate()
        rare?.goAheadTimer = nil
    }

    /// A timer has fired: its work is done in a turn, because what comes of it is a delivery (rule UC-72).
    private func ring(_ alarm: Alarms) {
        shared.withLock { _ = $0.alarms.insert(alarm) }
        wakeUp()
    }
}

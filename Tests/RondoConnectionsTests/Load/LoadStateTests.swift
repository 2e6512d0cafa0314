import Rondo
import RondoHTTP
import RondoStreams
import Testing

@testable import RondoConnections

/// The decisions of a load: every input in every phase.
@Suite(.leavesNoConnections) struct LoadStateTests {
    private static let plain = URLRequest(url: url("http://a.example/x"))
    private static let bare = URLRequest(url: url("http://a.example"))
    private static let ok = ResponseHead(version: .http11, status: 200, reason: "OK", fields: HeaderFields())

    private static func redirect(_ location: String?, status: Int = 302) -> ResponseHead {
        var fields = HeaderFields()
        if let location { fields.append(name: "Location", value: location) }
        return ResponseHead(version: .http11, status: status, reason: "Found", fields: fields)
    }

    enum Phase: String, CaseIterable, Sendable {
        case created, askingAboutCanonical, exchanging, askingAboutRedirect, receiving, ended, failed,
            cancelled
    }

    private static func state(in phase: Phase) -> LoadState {
        var state = LoadState(LoadRequest(phase == .askingAboutCanonical ? bare : plain))
        if phase == .created { return state }
        _ = state.started()
        switch phase {
        case .created, .askingAboutCanonical, .exchanging: break
        case .askingAboutRedirect: _ = state.receivedHead(redirect("/y"), bodyLength: 3)
        case .receiving: _ = state.receivedHead(ok, bodyLength: 3)
        case .ended:
            _ = state.receivedHead(ok, bodyLength: 3)
            _ = state.bodyEnded()
        case .failed: _ = state.failed(.unsupportedURL)
        case .cancelled: state.cancelled()
        }
        return state
    }

    @Test(arguments: Phase.allCases)
    func `only a load that was just made sends its request when it starts`(phase: Phase) {
        var state = Self.state(in: phase)
        #expect(state.started() == (phase == .created ? .send(LoadRequest(Self.plain), .first) : .nothing))
    }

    @Test(arguments: [Phase.failed, .cancelled]) func `an ended load is not aborted`(phase: Phase) {
        var state = Self.state(in: phase)
        var wasAsked = false
        let partial = { () -> PartialDownload? in
            wasAsked = true
            return nil
        }
        state.aborted(keeping: partial())
        #expect(!wasAsked && state.ignoresAnswer)
    }

    @Test func `UC-29 the start asks about a canonical form, and only then`() {
        var state = LoadState(LoadRequest(Self.bare))
        var canonical = Self.bare
        canonical.url = url("http://a.example/")
        #expect(state.started() == .ask(canonical, redirect: nil))
        #expect(state.replied(canonical) == .send(LoadRequest(canonical), .first))
        #expect(state.request.value == canonical)
        var refused = LoadState(LoadRequest(Self.bare))
        _ = refused.started()
        #expect(refused.replied(nil) == .fail(.canonicalRequestRefused))
        var unsupported = LoadState(LoadRequest(URLRequest(url: url("ftp://a.example/"))))
        #expect(unsupported.started() == .fail(.unsupportedURL))
        #expect(unsupported.ignoresAnswer)
    }

    @Test
    func `UC-28 fields that the delegate adds to the canonical form are sent, though the requests are equal`()
        throws
    {
        var state = LoadState(LoadRequest(Self.bare))
        _ = state.started()
        var answer = Self.bare
        answer.url = url("http://a.example/")
        answer.setValue("yes", forHTTPHeaderField: "X-Added")
        answer.httpBody = Data("body".utf8)
        guard case .send(let sent, .first) = state.replied(answer) else { throw Unexpected() }
        #expect(sent.value.value(forHTTPHeaderField: "X-Added") == "yes")
        #expect(sent.value.httpBody == Data("body".utf8))
    }

    private struct Unexpected: Error {}

    @Test(arguments: Phase.allCases)
    func `the delegate's answer counts only while the load state asks for it`(phase: Phase) {
        var other = Self.plain
        other.url = url("http://b.example/z")
        var state = Self.state(in: phase)
        let isAsking = phase == .askingAboutCanonical || phase == .askingAboutRedirect
        let reason = phase == .askingAboutCanonical ? SendReason.first : .redirect
        #expect(state.replied(other) == (isAsking ? .send(LoadRequest(other), reason) : .nothing))
        var refusing = Self.state(in: phase)
        switch phase {
        case .askingAboutCanonical: #expect(refusing.replied(nil) == .fail(.canonicalRequestRefused))
        case .askingAboutRedirect:
            #expect(refusing.replied(nil) == .deliver(.http(Self.redirect("/y"), bodyLength: 3)))
            #expect(refusing.deliversBody)
        default: #expect(refusing.replied(nil) == .nothing)
        }
        var wrong = Self.state(in: phase)
        let answer = wrong.replied(URLRequest(url: url("ftp://b.example/")))
        #expect(answer == (isAsking ? .fail(.unsupportedURL) : .nothing))
    }

    @Test(arguments: Phase.allCases)
    func `a response's head counts only while the load state awaits one`(phase: Phase) {
        var state = Self.state(in: phase)
        let action = state.receivedHead(Self.ok, bodyLength: nil)
        #expect(action == (phase == .exchanging ? .deliver(.http(Self.ok, bodyLength: nil)) : .nothing))
        #expect(state.deliversBody == (phase == .exchanging || phase == .receiving))
    }

    @Test(arguments: Phase.allCases)
    func `the end of a body counts only while the load state receives a body`(phase: Phase) {
        var state = Self.state(in: phase)
        #expect(state.bodyEnded() == (phase == .receiving ? .finish : .nothing))
        #expect(state.bodyEnded() == .nothing)
    }

    @Test(arguments: Phase.allCases)
    func `UC-18 a failure ends the load from every phase, once`(phase: Phase) {
        var state = Self.state(in: phase)
        let wasEnded = [.ended, .failed, .cancelled].contains(phase)
        #expect(state.ignoresAnswer == wasEnded)
        #expect(state.failed(.noRunLoop) == (wasEnded ? .nothing : .fail(.noRunLoop)))
        #expect(state.failed(.noRunLoop) == .nothing)
        #expect(state.ignoresAnswer)
        #expect(!state.deliversBody)
    }

    @Test(arguments: Phase.allCases)
    func `UC-17 after cancel the load state ignores every input`(phase: Phase) {
        var state = Self.state(in: phase)
        state.cancelled()
        #expect(state.started() == .nothing)
        #expect(state.replied(Self.plain) == .nothing)
        #expect(state.replied(nil) == .nothing)
        #expect(state.receivedHead(Self.ok, bodyLength: nil) == .nothing)
        #expect(state.receivedHead(Self.redirect("/y"), bodyLength: nil) == .nothing)
        #expect(state.bodyEnded() == .nothing)
        #expect(state.failed(.noRunLoop) == .nothing)
        #expect(state.ignoresAnswer)
    }

    private static let questions: [(Int, String?, isFromProxy: Bool, isChallenge: Bool)] = [
        (401, "WWW-Authenticate", true, true), (401, "WWW-Authenticate", false, true),
        (401, nil, true, false), (401, "Proxy-Authenticate", true, false),
        (407, "Proxy-Authenticate", true, true), (407, "Proxy-Authenticate", false, false),
        (407, nil, true, false), (407, "WWW-Authenticate", true, false),
        (403, "WWW-Authenticate", true, false),
    ]

    @Test(arguments: questions)
    func `UC-48 UC-52 a challenge says how to answer, and is no proxy's where there is none`(
        status: Int, field: String?, isFromProxy: Bool, isChallenge: Bool
    ) {
        var fields = HeaderFields()
        if let field { fields.append(name: field, value: "Basic realm=\"r\"") }
        let head = ResponseHead(version: .http11, status: status, reason: "", fields: fields)
        var state = Self.state(in: .exchanging)
        let action = state.receivedHead(head, bodyLength: 2, isFromProxy: isFromProxy)
        #expect(action == (isChallenge ? .authenticate(head) : .deliver(.http(head, bodyLength: 2))))
    }

    @Test(arguments: [false, true])
    func `RFC 9110 15.5.18 a 417 is sent again without the expectation only where there is one`(
        hadExpectation: Bool
    ) {
        var request = Self.plain
        request.setValue("100-continue", forHTTPHeaderField: "Expect")
        var state = LoadState(LoadRequest(request))
        _ = state.started()
        let head = ResponseHead(version: .http11, status: 417, reason: "", fields: HeaderFields())
        let action = state.receivedHead(head, bodyLength: 2, hadExpectation: hadExpectation)
        #expect(
            action
                == (hadExpectation
                    ? .send(LoadRequest(Self.plain), .withoutExpectation)
                    : .deliver(.http(head, bodyLength: 2))))
    }

    @Test func `UC-30 only redirects that are followed are counted`() {
        var state = Self.state(in: .askingAboutRedirect)
        #expect(state.redirectsFollowed == 0)
        _ = state.replied(Self.plain)
        #expect(state.redirectsFollowed == 1)
        _ = state.receivedHead(Self.redirect("/z"), bodyLength: 3)
        _ = state.replied(nil)
        #expect(state.redirectsFollowed == 1)
    }

    @Test func `UC-34 a redirect without Location, or to elsewhere than the web, fails`() {
        var missing = Self.state(in: .exchanging)
        #expect(
            missing.receivedHead(Self.redirect(nil), bodyLength: nil)
                == .fail(.redirectWithoutLocation(status: 302)))
        var file = Self.state(in: .exchanging)
        #expect(
            file.receivedHead(Self.redirect("file:///x"), bodyLength: nil)
                == .fail(.unsupportedRedirect(url("file:///x"))))
    }

    @Test func `UC-32 the seventeenth redirect fails`() {
        var state = Self.state(in: .exchanging)
        for number in 1...16 {
            guard case .ask(let request, _) = state.receivedHead(Self.redirect("/\(number)"), bodyLength: 0)
            else {
                Issue.record("redirect \(number) was not asked about")
                return
            }
            #expect(state.replied(request) == .send(LoadRequest(request), .redirect))
        }
        #expect(state.receivedHead(Self.redirect("/17"), bodyLength: 0) == .fail(.tooManyRedirects(16)))
    }

    @Test func `UC-33 a redirect is proposed in the form that its status wants`() {
        var post = Self.plain
        post.httpMethod = "POST"
        post.httpBody = Data("body".utf8)
        for (status, method, keepsBody) in [(301, "GET", false), (303, "GET", false), (307, "POST", true)] {
            var state = LoadState(LoadRequest(post))
            _ = state.started()
            let head = Self.redirect("https://b.example/", status: status)
            guard case .ask(let request, let redirect) = state.receivedHead(head, bodyLength: 0) else {
                Issue.record("\(status) was not asked about")
                continue
            }
            #expect(redirect == .http(head, bodyLength: 0))
            #expect(request.url == url("https://b.example/"))
            #expect(request.httpMethod == method)
            #expect((request.httpBody != nil) == keepsBody)
            // Until the delegate has agreed, the request is the old one.
            #expect(state.request.value == post)
        }
    }

    @Test func `UC-59 a look-up that was refused says so itself, and blames nothing below it`() {
        let refusal = LoadFailure.channel(.resolve(.tooManyLookups(host: "busy.example")))
        let error = URLErrors.error(refusal, url: URL(string: "http://busy.example/"))
        #expect(error.code == .resourceUnavailable)
        #expect(error.userInfo[NSUnderlyingErrorKey] == nil)
        #expect(error.localizedDescription.contains("“busy.example” was not looked up"))
        #expect(error.localizedDescription.hasSuffix("Try again when some of them have ended"))
        // Who was asked has a say.
        let answered = LoadFailure.channel(.resolve(ResolveError(host: "no.example", code: EAI_NONAME)))
        let cause = URLErrors.error(answered, url: nil).userInfo[NSUnderlyingErrorKey] as? NSError
        #expect(cause?.code == Int(EAI_NONAME))
    }

    @Test func `UC-58 the wait for cookies is not the server's`() throws {
        var state = Self.state(in: .exchanging)
        #expect(!state.waitsLocally)
        state.cookiesDelayed(for: LoadRequest(Self.plain), .redirect)
        #expect(state.waitsLocally)
        #expect(state.cookiesRead() == .answer(LoadRequest(Self.plain), .redirect))
        #expect(!state.waitsLocally && state.isAnswering)
        #expect(state.cookiesRead() == .nothing)
    }

    @Test func `UC-58 the wait for the delegate's word about stored credentials is not the server's`() {
        var state = Self.state(in: .created)
        _ = state.started(asksAboutStorage: true)
        #expect(state.waitsLocally)
        _ = state.repliedAboutStorage()
        #expect(!state.waitsLocally)
    }

    @Test func `a load that is over does not wait for cookies`() {
        for phase in [Phase.ended, .failed, .cancelled] {
            var state = Self.state(in: phase)
            state.cookiesDelayed(for: LoadRequest(Self.plain), .first)
            #expect(state.cookiesRead() == .nothing)
            #expect(state.ignoresAnswer)
        }
    }

    // MARK: - Sending again, or not

    private static let lost = LoadFailure.http(.truncatedBody(expected: 3, received: 1))

    /// The request for the rest of a download that was cut off after a byte.
    private static func rest() throws -> (LoadRequest, RequestedRest) {
        let response = try #require(
            HTTPURLResponse(
                url: url("http://a.example/x"), statusCode: 200, httpVersion: nil,
                headerFields: ["ETag": "\"a\""]))
        let resumption = try #require(DownloadResumption(response, bytes: 1, method: "GET"))
        return (LoadRequest(resumption.request), RequestedRest(resumption: resumption, failure: lost))
    }

    private static func head(ofRest range: String) -> ResponseHead {
        var fields = HeaderFields()
        fields.append(name: "Content-Range", value: range)
        return ResponseHead(version: .http11, status: 206, reason: "", fields: fields)
    }

    @Test(arguments: Phase.allCases)
    func `RFC 5861 4 a stale response stands in only while an answer is awaited`(phase: Phase) {
        var state = Self.state(in: phase)
        let stale = URLResponse(
            url: url("http://a.example/x"), mimeType: nil, expectedContentLength: 1,
            textEncodingName: nil)
        let action = state.answerFailed(Self.lost, .staleResponse(stale, Data("x".utf8)))
        switch phase {
        case .exchanging: #expect(action == .useStored(stale, Data("x".utf8)) && state.isAnswering)
        case .created, .askingAboutCanonical, .askingAboutRedirect, .receiving:
            #expect(action == .fail(Self.lost))
        case .ended, .failed, .cancelled: #expect(action == .nothing)
        }
    }

    @Test func `US-70 a load waits for a network and sends again, and tells the client once`() {
        var state = Self.state(in: .exchanging)
        for isFirst in [true, false] {
            let wait = ConnectivityWait(in: [LoopMode(loop: .loader, mode: .default)]) {}
            #expect(state.answerFailed(Self.lost, .connectivity(wait)) == .waitForNetwork(isFirst: isFirst))
            #expect(state.waitsLocally)
            #expect(state.networkMayBeBack() == .send(LoadRequest(Self.plain), .network))
            #expect(state.networkMayBeBack() == .nothing)
        }
    }

    @Test(arguments: ["bytes 1-2/3", "bytes 0-2/3"])
    func `the rest of a download is asked for, and what is no rest fails as the download did`(
        range: String
    ) throws {
        var state = Self.state(in: .receiving)
        let (request, rest) = try Self.rest()
        #expect(state.answerFailed(Self.lost, .rest(request, rest)) == .send(request, .rest(rest)))
        #expect(state.isAskingForRest && !state.deliversBody)
        // Cookies may have to be read in between.
        state.cookiesDelayed(for: request, .rest(rest))
        #expect(state.cookiesRead() == .answer(request, .rest(rest)))
        let action = state.receivedHeadOfRest(Self.head(ofRest: range), bodyLength: 2)
        let isRest = range.hasPrefix("bytes 1-")
        #expect(action == (isRest ? .continueFile(total: 3) : .fail(Self.lost)))
        #expect(state.deliversBody == isRest)
    }

    @Test func `a request for the rest that fails reports the failure of the download`() throws {
        var (answered, timedOut) = (Self.state(in: .receiving), Self.state(in: .receiving))
        let (request, rest) = try Self.rest()
        _ = answered.answerFailed(Self.lost, .rest(request, rest))
        #expect(answered.answerFailed(.unsupportedURL, .none) == .fail(Self.lost))
        // A failure of the load itself counts as it is.
        _ = timedOut.answerFailed(Self.lost, .rest(request, rest))
        #expect(timedOut.failed(.timedOut(seconds: 1)) == .fail(.timedOut(seconds: 1)))
    }

    @Test(arguments: Phase.allCases)
    func `a request is sent again as it is, or for the whole, only while an answer is awaited`(phase: Phase) {
        let isAnswering = phase == .exchanging
        var state = Self.state(in: phase)
        #expect(
            state.storedResponseRejected()
                == (isAnswering ? .send(LoadRequest(Self.plain), .withoutConditions) : .nothing))
        #expect(
            state.receivedUselessPart()
                == (isAnswering ? .send(LoadRequest(Self.plain), .wholeFile) : .nothing))
        #expect(state.networkMayBeBack() == .nothing)
        #expect(state.receivedHeadOfRest(Self.ok, bodyLength: nil) == .nothing)
    }

    @Test func `the cache is asked about a new request, not about one that is sent again as it is`() throws {
        let rest = SendReason.rest(try Self.rest().1)
        for reason in [.first, .redirect, .credential, .withoutExpectation, .wholeFile] as [SendReason] {
            #expect(reason.asksCache && reason.mayReuse)
        }
        for reason in [SendReason.withoutConditions, .network] {
            #expect(!reason.asksCache && reason.mayReuse)
        }
        #expect(!rest.asksCache && !rest.mayReuse)
    }

    // MARK: - Other inputs

    @Test func `a request that cannot be sent fails in the first pass, and asks nothing before`() {
        var state = LoadState(LoadRequest(Self.plain), failing: .unusableResumeData)
        #expect(state.failsAtOnce && !state.hasStarted)
        #expect(state.started(asksAboutStorage: true) == .fail(.unusableResumeData))
        #expect(!state.failsAtOnce && state.hasStarted && state.ignoresAnswer)
        #expect(state.started() == .nothing)
    }

    @Test func `a reply about a response counts only where the client was asked`() {
        for phase in Phase.allCases {
            var state = Self.state(in: phase)
            state.askedAboutResponse()
            #expect(state.isAskingAboutResponse == (phase == .receiving))
            state.repliedAboutResponse()
            #expect(state.deliversBody == (phase == .receiving))
        }
    }

    @Test func `US-69 the load ends once everything is stored, after the reply about caching`() {
        for phase in Phase.allCases {
            var state = Self.state(in: phase)
            #expect(state.endsOnceStored == (phase == .ended))
            state.askedAboutCaching()
            #expect(state.isAskingAboutCaching == (phase == .ended))
            state.stored()
            #expect(state.isAskingAboutCaching == (phase == .ended))
            state.repliedAboutCaching()
            #expect(state.endsOnceStored == (phase == .ended))
            state.stored()
            #expect(!state.endsOnceStored)
        }
    }

    @Test func `UC-22 a part is a response only while content is received`() {
        for phase in Phase.allCases where phase != .exchanging {
            var state = Self.state(in: phase)
            switch (phase, state.receivedPart(Self.ok)) {
            case (.receiving, .deliver(.other(let response))):
                #expect(response.url == url("http://a.example/x") && state.deliversBody)
            case (.receiving, _): Issue.record("the part is no response")
            case (_, let action): #expect(action == .nothing)
            }
        }
    }
}

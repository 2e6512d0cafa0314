import Rondo
import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoConnections

/// One thread at a time in a load, and calls for a queue one at a time.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct GateTests {
    @Test func `the gate turns a call away while another is inside, and catches up with it`() throws {
        let gate = Gate()
        let log = EventLog()
        let (entered, leave) = (Latch(), Latch())
        let first = LoopThread { _ in
            gate.enter(
                {
                    log.note("first")
                    entered.open()
                    leave.waitOrRecord()
                }, catchUp: { log.note("catch up") })
        }
        try entered.wait()
        // Does not wait.
        for _ in 0..<3 {
            gate.enter(
                { log.note("second") }, catchUp: { log.note("wrong") }, onRefusal: { log.note("away") })
        }
        leave.open()
        try first.value()
        #expect(log.entries == ["first", "away", "away", "away", "catch up"])
        gate.enter({ log.note("free again") }, catchUp: { log.note("wrong") })
        #expect(log.entries.last == "free again")
    }

    @Test func `the gate turns away a nested call, and catches up with a call made while it catches up`() {
        let gate = Gate()
        let log = EventLog()
        let rounds = Box(0)
        gate.enter(
            { gate.enter({ log.note("inner") }, catchUp: {}, onRefusal: { log.note("away") }) },
            catchUp: {
                log.note("catch up")
                rounds.value += 1
                if rounds.value < 3 { gate.enter({ log.note("inner") }, catchUp: {}) }
            })
        #expect(log.entries == ["away", "catch up", "catch up", "catch up"])
    }

    @Test func `two threads are never inside the gate together, and no call is forgotten`() throws {
        let gate = Gate()
        let inside = Box(0)
        let overlaps = Box(0)
        let wanted = Box(0)
        let seen = Box(0)
        let look = {
            @Sendable in
            if inside.mutate({
                $0 += 1; return $0
            }) != 1 {
                overlaps.mutate { $0 += 1 }
            }
            seen.value = wanted.value
            inside.mutate { $0 -= 1 }
        }
        let threads = (0..<2).map { _ in
            LoopThread { _ in
                for _ in 0..<20_000 {
                    wanted.mutate { $0 += 1 }
                    gate.enter(look, catchUp: look)
                }
            }
        }
        for thread in threads { try thread.value() }
        #expect(overlaps.value == 0)
        // All that was wanted was seen in the end.
        #expect(seen.value == 40_000)
    }

    @Test func `UC-58 a timer that is turned away at the gate is looked at in the pass that follows`() throws
    {
        // A clock belongs to one loop.
        let clocks = [false, false].map { ManualClock(advancesAutomatically: $0) }
        let body = Latch()
        let server = try TestServer.sending(
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", until: body, then: "body")
        let load = Box<Load?>(nil)
        let wasTurnedAway = Box(false)
        let recorder = Recorder { call, _ in
            guard call == .response else { return }
            // The other loop's timer, while this one is inside.
            for clock in clocks { clock.advance(by: 61) }
            let alarm = try? waitFor("the timer") {
                load.value?.inbox.hasTimeCheck ?? false ? true : nil
            }
            wasTurnedAway.value = alarm ?? false
        }
        let other = Box<RunLoop?>(nil)
        let thread = LoopThread { loop in
            clocks[0].attach(to: loop)
            let keepAlive = Port()
            loop.add(keepAlive, forMode: .default)
            other.value = loop
            _ = loop.run(in: .default, for: 1e9, returnAfterSourceHandled: false)
            keepAlive.invalidate()
        }
        let second = try waitFor("a second loop") { other.value }
        try onLoopThread { loop in
            clocks[1].attach(to: loop)
            let request = URLRequest(url: server.url())
            guard
                let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            else { return }
            let loader = Load(
                for: connection, request: LoadRequest(request),
                in: [loop, second].map { LoopMode(loop: $0, mode: .default) },
                settings: URLConnection.Settings.standard.load,
                defaults: DelegateObject.of(recorder).kind?.defaults, writesFile: false)
            load.value = loader
            loader.start()
            // Whichever of the two loops serves it.
            let turns = { (condition: () -> Bool) in
                while !condition() { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false) }
            }
            turns { wasTurnedAway.value }
            // The clock was looked at, and set anew: the time in the delegate is not the server's.
            turns { !loader.inbox.hasTimeCheck }
            #expect(recorder.calls == ["response 200"])
            body.open()
            turns { recorder.isDone }
        }
        #expect(wasTurnedAway.value)
        #expect(recorder.calls == ["response 200", "data", "finish"])
        load.value = nil
        second.stop()
        try thread.value()
        server.stop()
    }

    @Test func `US-30 a time check that comes while a load is being suspended is made afterwards`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "body")
            peer.waitForEnd()
        }
        let recorder = Recorder()
        try onLoopThread { loop in
            let request = URLRequest(url: server.url())
            guard
                let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
            else { return }
            let load = Load(
                for: connection, request: LoadRequest(request),
                in: [LoopMode(loop: loop, mode: .default)],
                settings: URLConnection.Settings.standard.load,
                defaults: DelegateObject.of(recorder).kind?.defaults, writesFile: false)
            load.start()
            // `suspend()` on another thread has come so far, and has not stopped the clocks yet.
            load.inbox.suspend(true)
            load.shortDelayHasPassed()
            let waits = load.inbox.hasTimeCheck
            #expect(waits)
            load.resume()
            loop.runOut()
            let stillWaits = load.inbox.hasTimeCheck
            #expect(!stillWaits)
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
    }

    /// Ends its load while the load prepares a call.
    private final class AbortingClient: LoadClient, Sendable {
        let (isCancelled, decidesOnResponses, wantsInformational, sharesTrustDecisions) = (
            false, false, false, false
        )
        let nameInRunLoops: String? = nil
        let load = Box<Load?>(nil)
        let made = EventLog()
        private let queue = OperationQueue()

        var delegateQueue: DelegateQueue? {
            load.value?.abort(.cancelled)
            return DelegateQueue(queue)
        }

        func make(_ call: DelegateCall) -> DelegateCall.Reply {
            made.note(call.isTerminal ? "end" : "another call")
            return .none
        }

        func setCurrentRequest(_ request: URLRequest) {}
        func loadDidEnd() { load.value = nil }
    }

    @Test func `US-32 a call on its way to the delegate queue is not made once the load was ended`() throws {
        let client = AbortingClient()
        try onLoopThread { loop in
            let load = Load(
                for: client, request: LoadRequest(URLRequest(url: url("http://127.0.0.1/"))),
                in: [LoopMode(loop: loop, mode: .default)],
                settings: URLConnection.Settings.standard.load, defaults: nil, writesFile: false)
            client.load.value = load
            load.start()
            loop.runOut()
        }
        #expect(client.made.entries == ["end"])
    }

    /// Refuses content, as a client that collects it does beyond its limit.
    private final class RefusingClient: LoadClient, Sendable {
        let (isCancelled, decidesOnResponses, wantsInformational, sharesTrustDecisions) = (
            false, false, false, false
        )
        let delegateQueue: DelegateQueue? = nil
        let nameInRunLoops: String? = nil
        let load = Box<Load?>(nil)
        let ends = EventLog()

        func make(_ call: DelegateCall) -> DelegateCall.Reply {
            switch call {
            case .shouldUseCredentialStorage: return .usesStorage(true)
            case .willSend(let request, _): return .request(request)
            case .data: load.value?.abort(.collectedTooMuch(1))
            case .finish: ends.note("finish")
            case .fail: ends.note("fail")
            default: break
            }
            return .none
        }

        func setCurrentRequest(_ request: URLRequest) {}
        func loadDidEnd() { load.value = nil }
    }

    @Test func `US-44 a load whose client has refused the last piece of its content fails`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "body")
            peer.waitForEnd()
        }
        let client = RefusingClient()
        try onLoopThread { loop in
            let load = Load(
                for: client, request: LoadRequest(URLRequest(url: server.url())),
                in: [LoopMode(loop: loop, mode: .default)],
                settings: URLConnection.Settings.standard.load, defaults: nil, writesFile: false)
            client.load.value = load
            load.start()
            loop.runOut()
        }
        #expect(client.ends.entries == ["fail"])
    }

    // MARK: - LoadInbox

    @Test func `US-30 the first call for the delegate queue waits if the load was suspended before`() throws {
        let inbox = LoadInbox()
        let (queue, made) = (OperationQueue(), Box(0))
        inbox.suspend(true)
        _ = inbox.beginQueueing().add(.sent(1, total: 1, expected: 1), to: DelegateQueue(queue)) { _ in
            made.mutate { $0 += 1 }
        }
        queue.waitUntilAllOperationsAreFinished()
        #expect(made.value == 0)
        inbox.suspend(false)
        try waitFor("the call") { made.value == 1 ? () : nil }
    }

    @Test func `US-63 an end that waits for the delegate queue is not lost by another cancel`() throws {
        let inbox = LoadInbox()
        let queue = OperationQueue()
        queue.isSuspended = true
        inbox.abort(.cancelled, keepingDownload: true)
        #expect(inbox.takeAbortion()?.failure == .cancelled)
        let made = Box(0)
        // With it goes the partial file of a download.
        let end = DelegateCall.fail(URLError(.cancelled), partial: nil)
        _ = inbox.beginQueueing().add(end, to: DelegateQueue(queue)) { _ in made.mutate { $0 += 1 } }
        inbox.abort(.cancelled, keepingDownload: true)
        #expect(inbox.takeAbortion() == nil)
        queue.isSuspended = false
        try waitFor("the end") { made.value == 1 ? () : nil }
    }

    @Test func `UC-17 a cancel after the last call of the delegate queue ends nothing`() {
        let inbox = LoadInbox()
        inbox.noteLastCall()
        inbox.abort(.cancelled, keepingDownload: true)
        let (isOver, isAborted, keeps) = (inbox.hasMadeLastCall, inbox.isAborted, inbox.keepsDownload)
        #expect(isOver && !isAborted && !keeps)
        #expect(inbox.takeAbortion() == nil)
    }

    @Test(arguments: [true, false])
    func `US-63 the file of a failure that was dropped goes with the end, if the cancel keeps it`(
        keeps: Bool
    ) throws {
        let inbox = LoadInbox()
        let partial = try Self.partial()
        // Without a cancel nothing is kept.
        inbox.putDropped(partial)
        inbox.abort(.cancelled, keepingDownload: keeps)
        let (isAborted, keepsDownload) = (inbox.isAborted, inbox.keepsDownload)
        #expect(isAborted && keepsDownload == keeps)
        inbox.putDropped(partial)
        #expect(inbox.takeAbortion()?.partial === (keeps ? partial : nil))
        inbox.noteLastCall()
        let isOver = inbox.hasMadeLastCall
        #expect(isOver)
    }

    /// The file of a download that was cut off after a byte.
    private static func partial() throws -> PartialDownload {
        let response = try #require(
            HTTPURLResponse(
                url: url("http://a/"), statusCode: 200, httpVersion: nil, headerFields: ["ETag": "\"a\""]))
        let resumption = try #require(
            DownloadResumption(response, bytes: 1, method: "GET"))
        return PartialDownload(try DownloadFile(), resumption)
    }

    @Test(arguments: [true, false])
    func `US-63 a cancel keeps the file of a download whose failure waits for the delegate queue`(
        keeps: Bool
    ) throws {
        let inbox = LoadInbox()
        let (queue, partial) = (OperationQueue(), try Self.partial())
        queue.isSuspended = true
        for call in [
            .wrote(1, total: 1, expected: 2), DelegateCall.fail(URLError(.timedOut), partial: partial),
        ] {
            _ = inbox.beginQueueing().add(call, to: DelegateQueue(queue)) { _ in
                Issue.record("the call was dropped")
            }
        }
        inbox.abort(.cancelled, keepingDownload: keeps)
        #expect(inbox.takeAbortion()?.partial === (keeps ? partial : nil))
        #expect(inbox.takeAbortion() == nil)
        queue.isSuspended = false
        queue.waitUntilAllOperationsAreFinished()
    }

    @Test func `US-63 a cancel keeps the file of a download whose failure waits for its resumption`() throws {
        final class Client: LoadClient, Sendable {
            let (isCancelled, decidesOnResponses, wantsInformational, sharesTrustDecisions) = (
                false, false, false, false
            )
            let delegateQueue: DelegateQueue? = nil
            let nameInRunLoops: String? = nil
            func make(_ call: DelegateCall) -> DelegateCall.Reply { .none }
            func setCurrentRequest(_ request: URLRequest) {}
            func loadDidEnd() {}
        }
        let inbox = LoadInbox()
        let partial = try Self.partial()
        var delivery = LoadDelivery(to: Client())
        inbox.suspend(true)
        for call in [
            .wrote(1, total: 1, expected: 2), DelegateCall.fail(URLError(.timedOut), partial: partial),
        ] {
            guard case .waits = delivery.method(of: call, inbox) else {
                Issue.record("a suspended load makes no call")
                return
            }
        }
        let dropped = (delivery.dropWaiting(), delivery.dropWaiting())
        #expect(dropped.0 === partial && dropped.1 == nil)
    }

    // MARK: - QueuedCalls

    @Test func `UC-11 queued calls are made in order and one at a time`() throws {
        let calls = QueuedCalls()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 8
        let made = Box<[Int]>([])
        let inside = Box(0)
        let overlaps = Box(0)
        for number in 1...1000 {
            _ = calls.add(.sent(number, total: 0, expected: 0), to: DelegateQueue(queue)) { call in
                if inside.mutate({
                    $0 += 1; return $0
                }) != 1 {
                    overlaps.mutate { $0 += 1 }
                }
                if case .sent(let number, _, _) = call { made.mutate { $0.append(number) } }
                inside.mutate { $0 -= 1 }
            }
        }
        // The operation may still be on its way to the queue.
        try waitFor("the calls") { made.value.count == 1000 ? () : nil }
        #expect(made.value == Array(1...1000))
        #expect(overlaps.value == 0)
    }

    @Test func `UC-11 too many bytes that wait stop the reading, until half of them are gone`() throws {
        let calls = QueuedCalls()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let quarter = Data(count: QueuedCalls.maximumWaitingBytes / 4 - QueuedCalls.bytesPerCall)
        let (half, rest) = (Latch(), Latch())
        let made = Box(0)
        var mayRead = true
        for number in 1...5 {
            #expect(mayRead == (number <= 5))
            let adding = calls.add(.data(quarter), to: DelegateQueue(queue)) { _ in
                made.value += 1
                if made.value == 3 {
                    half.open()
                    rest.waitOrRecord()
                }
            }
            if case .queued(let mayReadOn) = adding { mayRead = mayReadOn }
        }
        #expect(!mayRead)
        #expect(!calls.mayRead)
        queue.isSuspended = false
        try half.wait()
        #expect(calls.mayRead)
        rest.open()
        try waitFor("the calls") { made.value == 5 ? () : nil }
    }

    @Test func `UC-17 after removeAll nothing that waited is called`() throws {
        let calls = QueuedCalls()
        let queue = OperationQueue()
        queue.isSuspended = true
        let made = Box(0)
        for _ in 0..<5 { _ = calls.add(.finish, to: DelegateQueue(queue)) { _ in made.mutate { $0 += 1 } } }
        calls.removeAll()
        queue.isSuspended = false
        queue.waitUntilAllOperationsAreFinished()
        #expect(made.value == 0)
        // And it goes on afterwards.
        _ = calls.add(.finish, to: DelegateQueue(queue)) { _ in made.mutate { $0 += 1 } }
        try waitFor("the call") { made.value == 1 ? () : nil }
    }
}

extension LoadInbox {
    /// Whether the load is to look at its clock. Only while nothing else takes that message.
    fileprivate var hasTimeCheck: Bool {
        guard takeTimeCheck() else { return false }
        put(.timeCheck)
        return true
    }
}

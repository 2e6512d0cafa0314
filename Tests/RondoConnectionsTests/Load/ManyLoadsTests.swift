import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// Many loads at once, half of them cancelled at any moment from other threads.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct ManyLoadsTests {
    /// Notes what one load was told, and whether that was allowed (rules UC-17 to UC-20).
    private final class Watching: NSObject, URLConnectionDataDelegate, Sendable {
        private struct State {
            var calls: [String] = []
            var body = 0
            var wrong: [String] = []
            var isInside = false
        }

        private let state = Mutex(State())

        var calls: [String] { state.withLock { $0.calls } }
        var wrong: [String] { state.withLock { $0.wrong } }
        var isDone: Bool { state.withLock { $0.calls.last == "finish" || $0.calls.last == "fail" } }

        private func note(_ call: String, unless isWrong: (State) -> Bool) {
            state.withLock { state in
                if ["finish", "fail"].contains(state.calls.last) || isWrong(state) || state.isInside {
                    state.wrong.append("\(call) \(state.isInside ? "inside" : "after") \(state.calls)")
                }
                state.isInside = true
                if call != "data" || state.calls.last != "data" { state.calls.append(call) }
            }
            // So that another thread would come in between if it could.
            sched_yield()
            state.withLock { $0.isInside = false }
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            note("response") { !$0.calls.isEmpty }
        }

        func connection(_ connection: URLConnection, didReceive data: Data) {
            state.withLock { $0.body += data.count }
            note("data") { !$0.calls.contains("response") }
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            note("finish") { $0.body != 50_000 }
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            note("fail") { _ in true }
        }
    }

    @Test func `UC-17 of 200 loads in mixed modes half are cancelled, and each is told what it may be told`()
        throws
    {
        let body = longText(50_000)
        let server = try TestServer.answering { _ in body }
        let delegates = (0..<200).map { _ in Watching() }
        let isOver = Box(false)
        let started = Box<[URLConnection]>([])
        let cancellers = (0..<2).map { number in
            LoopThread { _ in
                var generator = SystemRandomNumberGenerator()
                // Every second load, at whatever moment this thread comes to it.
                var left = Array(stride(from: number * 2, to: 200, by: 4))
                while !left.isEmpty, !isOver.value {
                    let index = Int.random(in: 0..<left.count, using: &generator)
                    guard left[index] < started.value.count else { continue }
                    started.value[left[index]].cancel()
                    left.remove(at: index)
                    for _ in 0..<Int.random(in: 0..<200, using: &generator) { sched_yield() }
                }
            }
        }
        try onLoopThread { loop in
            for (number, delegate) in delegates.enumerated() {
                guard
                    let connection = URLConnection(
                        request: URLRequest(url: server.url("/\(number)")), delegate: delegate,
                        startImmediately: false)
                else { continue }
                let modes: [RunLoop.Mode] = [.default, .work, .common]
                connection.schedule(in: loop, forMode: modes[number % 3])
                connection.start()
                started.mutate { $0.append(connection) }
            }
            let kept = stride(from: 1, to: 200, by: 2).map { delegates[$0] }
            let limit = Date(timeIntervalSinceNow: testPatience)
            while !kept.allSatisfy(\.isDone), limit.timeIntervalSinceNow > 0 {
                for mode in [RunLoop.Mode.default, .work] {
                    _ = loop.run(in: mode, for: 0.01, returnAfterSourceHandled: false)
                }
            }
            isOver.value = true
        }
        for canceller in cancellers { try canceller.value() }
        for (number, delegate) in delegates.enumerated() {
            #expect(delegate.wrong == [])
            if number % 2 == 1 { #expect(delegate.calls == ["response", "data", "finish"]) }
        }
        server.stop()
    }

    /// Three threads start loads in two other loops, one of which spins, and on a queue; each meanwhile
    /// cancels and asks what all have started. Connections and kept sockets go from thread to thread.
    @Test func `UC-4 UC-17 loads of several threads in two loops and on a queue, half cancelled by others`()
        throws
    {
        let body = longText(50_000)
        let server = try TestServer { peer in
            for _ in 0..<5 {
                _ = try peer.readRequest()
                try peer.respond(body: body)
            }
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Connection: close"], body: body)
        }
        let isOver = Box(false)
        let loopThreads = (0..<2).map { number in
            LoopThread { loop in
                if number == 0 { loop.spinDuration = 0.000_05 }
                let port = Port()
                for mode in [RunLoop.Mode.default, .work] { loop.add(port, forMode: mode) }
                while !isOver.value {
                    for mode in [RunLoop.Mode.default, .work] {
                        _ = loop.run(in: mode, for: 0.002, returnAfterSourceHandled: false)
                    }
                }
                port.invalidate()
            }
        }
        let loops = try loopThreads.map { try $0.loop }
        let queue = OperationQueue()
        let delegates = (0..<300).map { _ in Watching() }
        let started = Box<[Int: URLConnection]>([:])
        let workers = (0..<3).map { worker in
            LoopThread { _ in
                var generator = SystemRandomNumberGenerator()
                for number in stride(from: worker, to: delegates.count, by: 3) {
                    guard
                        let connection = URLConnection(
                            request: URLRequest(url: server.url("/\(number)")), delegate: delegates[number],
                            startImmediately: false)
                    else { continue }
                    switch number / 3 % 4 {
                    case 0: for loop in loops { connection.schedule(in: loop, forMode: .default) }
                    case 1: for loop in loops { connection.schedule(in: loop, forMode: .common) }
                    case 2: connection.setDelegateQueue(queue)
                    default:
                        connection.schedule(in: loops[0], forMode: .work)
                        connection.schedule(in: loops[1], forMode: .default)
                    }
                    connection.start()
                    started.mutate { $0[number] = connection }
                    for _ in 0..<4 {
                        let other = Int.random(in: 0..<delegates.count, using: &generator)
                        guard let found = started.value[other] else { continue }
                        #expect(!found.whyNotDelivering.description.isEmpty)
                        #expect(found.currentRequest.url?.path == "/\(other)")
                        if other % 2 == 0 { found.cancel() }
                    }
                }
            }
        }
        for worker in workers { try worker.value() }
        try waitFor("the ends of 150 loads") {
            stride(from: 1, to: delegates.count, by: 2).allSatisfy { delegates[$0].isDone } ? () : nil
        }
        for connection in started.value.values { connection.cancel() }
        isOver.value = true
        for thread in loopThreads { try thread.value() }
        queue.waitUntilAllOperationsAreFinished()
        #expect(started.value.count == delegates.count)
        for (number, delegate) in delegates.enumerated() {
            #expect(delegate.wrong == [])
            if number % 2 == 1 { #expect(delegate.calls == ["response", "data", "finish"]) }
        }
        server.stop()
    }

    /// Not each between two of the callbacks. (The clock stands still, or a slow machine would have them begin earlier.)
    @Test func `UC-13 loads that are started by callbacks of what is ready together begin together`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "ok")
        }
        let log = EventLog()
        let recorders = (0..<3).map { _ in Recorder() }
        try onLoopThread { loop in
            ManualClock(advancesAutomatically: false).attach(to: loop)
            let pipes = recorders.map { _ in Pipe() }
            for (pipe, recorder) in zip(pipes, recorders) {
                pipe.fileHandleForWriting.write(Data([1]))
                let descriptor = pipe.fileHandleForReading.fileDescriptor
                let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { source, _ in
                    source.invalidate()
                    log.note("start")
                    let connection = URLConnection(
                        request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
                    connection?.configuration.onDiagnostic = {
                        if $0.kind == .connecting { log.note("connect") }
                    }
                    connection?.start()
                }
                loop.add(source, forMode: .default)
            }
            loop.runOut()
        }
        #expect(log.entries == ["start", "start", "start", "connect", "connect", "connect"])
        #expect(recorders.allSatisfy { $0.calls == ["response 200", "data", "finish"] })
    }
}

import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoCore
@testable import RondoStreams

/// A callback that a loop has begun, and that is held up before it has asked which load has the connection now.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct LateCallbackTests {
    /// The callback that a loop which has found a connection ready takes out of its source, to call it next.
    private struct Callback: Sendable {
        let source: RunLoop.Source
        let callback: RunLoop.Source.Callback

        /// Takes the callback of the connection that is kept for `key`.
        init(ofConnectionKeptFor key: ConnectionKey) throws {
            let kept = try #require(ConnectionPool.shared.take(for: key))
            source = try #require(kept.channel.transport?.source)
            callback = try #require(source.state.withLock { $0.perform })
            ConnectionPool.shared.add(kept)
        }

        var isReadable: Bool {
            guard case .descriptor(let kind) = source.kind else { return false }
            return SocketCalls.poll(kind.watched, for: Int32(POLLIN)) != 0
        }

        func perform() { callback.call(source, .read) }
    }

    /// The place of the next load, beside the default mode of another loop: in the loop that is late, which runs in
    /// default.
    enum Place: CaseIterable {
        case nowhere, otherMode, commonModes, sameMode

        var mode: RunLoop.Mode? {
            switch self {
            case .nowhere: nil
            case .otherMode: .work
            case .commonModes: .common
            case .sameMode: .default
            }
        }

        var isServed: Bool { self == .commonModes || self == .sameMode }
    }

    @Test(arguments: Place.allCases)
    func `UC-3 a callback that comes late enters no load that is not scheduled there`(place: Place) throws {
        let (asked, answer) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "first")
            _ = try peer.readRequest()
            asked.open()
            try answer.wait()
            try peer.respond(body: "second")
            peer.waitForEnd()
        }
        let key = ConnectionKey(host: "127.0.0.1", port: Int(server.port), tls: nil)
        let (isHeldUp, goesOn) = (Latch(), Latch())
        let late = Box<Callback?>(nil)
        let first = Recorder()
        let thread = LoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url()), delegate: first)
            loop.runOut()
            late.value = try? Callback(ofConnectionKeptFor: key)
            isHeldUp.open()
            goesOn.waitOrRecord()
            loop.perform { late.value?.perform() }
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
        }
        let lateLoop = try thread.loop
        try isHeldUp.wait()
        #expect(first.text == "first")
        let callback = try #require(late.value)
        let second = Recorder()
        try onLoopThread { loop in
            second.loop = loop
            let request = URLRequest(url: server.url())
            let connection = URLConnection(request: request, delegate: second, startImmediately: false)
            connection?.schedule(in: loop, forMode: .default)
            if let mode = place.mode { connection?.schedule(in: lateLoop, forMode: mode) }
            connection?.start()
            loop.run { asked.isOpen }
            answer.open()
            _ = try? waitFor("the answer") { callback.isReadable ? () : nil }
            goesOn.open()
            _ = try? thread.value()
            // It is not lost: the other loop is told of it as well.
            if !place.isServed { #expect(second.calls == []) }
            #expect(loop.runOut() == .finished)
        }
        #expect(server.accepted == 1)
        #expect(second.text == "second")
        #expect(second.calls == ["response 200", "data", "finish"])
        #expect(second.places == [place.isServed ? "another thread" : RunLoop.Mode.default.rawValue])
        server.stop()
    }
}

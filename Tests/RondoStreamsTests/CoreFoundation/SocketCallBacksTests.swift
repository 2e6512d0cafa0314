import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests the value that decides which callbacks of a CFSocket may be made.
@Suite struct SocketCallBacksTests {
    private static let kinds: [CFSocketCallBackType] = [.readCallBack, .acceptCallBack, .dataCallBack]

    @Test(arguments: kinds)
    func `CS-7 enabling and disabling concern the types that a socket has`(_ kind: CFSocketCallBackType) {
        for other in Self.kinds where other != kind {
            var callBacks = SocketCallBacks(kind, .ready)
            callBacks.disable(other.union([.writeCallBack, .connectCallBack]))
            #expect(callBacks.mayRead)
            callBacks.enable(.writeCallBack)
            #expect(!callBacks.mayWrite)
        }
    }

    @Test func `CS-7 a callback of which the flag is set is enabled when its call has returned`() {
        for kind in Self.kinds + [.writeCallBack] {
            for isSet in [true, false] {
                for disables in [true, false] {
                    for enables in [true, false] {
                        var callBacks = SocketCallBacks(kind, .ready)
                        callBacks.flags = isSet ? kind.rawValue : 0
                        callBacks.begin(kind)
                        #expect(callBacks.interest == [])
                        if disables { callBacks.disable(kind) }
                        if enables { callBacks.enable(kind) }
                        callBacks.end(kind)
                        let interest: RunLoop.Source.Interest = kind == .writeCallBack ? .write : .read
                        #expect(callBacks.interest == (enables || isSet && !disables ? interest : []))
                        #expect(callBacks.flags == (isSet ? kind.rawValue : 0))
                    }
                }
            }
        }
    }

    @Test func `CS-6 a connection is told of once, and before there is room to write`() {
        var callBacks = SocketCallBacks([.dataCallBack, .connectCallBack, .writeCallBack], .idle)
        #expect(callBacks.interest == [])
        callBacks.phase = .connecting(threadWaits: false)
        #expect(callBacks.interest == .write && !callBacks.mayRead && !callBacks.mayWrite)
        callBacks.connected(0, inBackground: true)
        #expect(callBacks.interest == [.read, .write] && !callBacks.mayWrite)
        #expect(callBacks.takeOutcome() == 0)
        callBacks.begin(.connectCallBack)
        callBacks.end(.connectCallBack)
        #expect(callBacks.mayWrite)
        callBacks.enable(.connectCallBack)
        callBacks.connected(ECONNREFUSED, inBackground: true)
        #expect(callBacks.takeOutcome() == nil)
    }

    @Test func `CS-9 a failure that a thread has waited for is not told again`() {
        for types: CFSocketCallBackType in [.dataCallBack, [.dataCallBack, .connectCallBack]] {
            var callBacks = SocketCallBacks(types, .idle)
            callBacks.phase = .connecting(threadWaits: true)
            #expect(callBacks.interest == [])
            callBacks.connected(ECONNREFUSED, inBackground: false)
            #expect(callBacks.interest == [] && callBacks.takeOutcome() == nil)
            // One in the background is told, by connect or as an end.
            callBacks.phase = .connecting(threadWaits: false)
            callBacks.connected(ECONNREFUSED, inBackground: true)
            #expect(callBacks.mayRead != types.contains(.connectCallBack))
            #expect((callBacks.takeOutcome() == ECONNREFUSED) == types.contains(.connectCallBack))
            #expect((callBacks.interest == []) == types.contains(.connectCallBack))
        }
    }

    @Test func `CS-5 after the end of a connection nothing is read`() {
        var callBacks = SocketCallBacks(.dataCallBack, .ready)
        callBacks.endConnection()
        callBacks.enable(.dataCallBack)
        #expect(callBacks.interest == [] && !callBacks.mayRead)
    }

    @Test func `a socket that is watched for nothing says what to call`() {
        let nothing = DeliveryObstacle(reason: .waitsForNothing, description: "its interest is empty")
        func words(
            _ types: CFSocketCallBackType, _ phase: SocketCallBacks.Phase, isPaused: Bool = false,
            _ change: (inout SocketCallBacks) -> Void = { _ in }
        ) -> String {
            var callBacks = SocketCallBacks(types, phase)
            change(&callBacks)
            return callBacks.obstacle(nothing, isPaused: isPaused).description
        }
        #expect(words(.acceptCallBack, .idle) == "it does not listen: call CFSocketSetAddress")
        #expect(words(.dataCallBack, .idle) == "it is not connected: call CFSocketConnectToAddress")
        #expect(
            words(.dataCallBack, .connecting(threadWaits: true))
                == "a thread waits in CFSocketConnectToAddress for its connection")
        #expect(
            words(.readCallBack, .ready) { $0.disable(.readCallBack) }
                == "no callback is enabled: call CFSocketEnableCallBacks")
        #expect(
            words(.dataCallBack, .ready) { $0.endConnection() }
                == "its connection has ended: there is nothing more to read")
        #expect(words([], .ready) == "it was made without callbacks")
        #expect(
            words(.connectCallBack, .idle) {
                $0.connected(0, inBackground: true)
                _ = $0.takeOutcome()
            } == "its connect callback was made, and it has no other one")
        #expect(
            words(.acceptCallBack, .ready, isPaused: true)
                == "it waits for descriptors or memory, which have run out, and soon tries again")
        let other = DeliveryObstacle(reason: .busy, description: "another reason")
        #expect(SocketCallBacks(.dataCallBack, .idle).obstacle(other, isPaused: false) == other)
    }

    @Test func `CS-10 CS-12 a thread that found no descriptor for its pipe gets one at a later wait`() async {
        await #expect(processExitsWith: .success) {
            var state = CFSocket.State(callBacks: SocketCallBacks([], .ready))
            withNoDescriptorLeft { state.beginWaiting() }
            precondition(state.waitingThreads == 1 && state.wakeUp.reading < 0)
            state.beginWaiting(again: true)
            let pipe = state.wakeUp
            precondition(pipe.reading >= 0)
            state.beginWaiting(again: true)
            precondition(state.wakeUp == pipe && state.waitingThreads == 1)
            state.wakeWaitingThreads()
            precondition(SocketCalls.poll(pipe.reading, for: POLLIN) == POLLIN)
            let isLast = state.endWaiting()
            precondition(!isLast && state.waitingThreads == 0 && state.wakeUp.reading < 0)
        }
    }

    @Test func `CS-10 CS-12 a thread that waits without a pipe learns that the socket was invalidated`() async
    {
        await #expect(processExitsWith: .success) {
            var ends: [Int32] = [-1, -1]
            precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            guard let socket = CFSocket.socket(ends[0], [], label: nil, attachment: nil, nil) else {
                preconditionFailure("no socket")
            }
            // The descriptor stays open, so that nothing but the pipe would wake the thread.
            socket.flags = 0
            let sending = LoopThread { _ in
                withNoDescriptorLeft { socket.send(Data(count: 10_000_000), to: nil, timeout: 0) }
            }
            try waitFor("the wait") { socket.state.withLock { $0.waitingThreads } == 1 ? () : nil }
            let pipe = socket.state.withLock { $0.wakeUp.reading }
            precondition(pipe < 0)
            socket.invalidate()
            let result = try sending.value()
            precondition(result == .error)
        }
    }
}

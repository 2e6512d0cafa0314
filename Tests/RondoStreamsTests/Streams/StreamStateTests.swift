import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

@Suite(.leavesNothing) struct StreamStateTests {
    private func open(_ direction: StreamState.Direction, isReady: Bool) -> StreamState {
        var state = StreamState(direction)
        check(state.open())
        state.opened(isScheduled: true, isReady: isReady)
        return state
    }

    /// `#expect` cannot call what changes the state.
    private func check(_ answer: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(answer, sourceLocation: sourceLocation)
    }

    private let error = NSError(domain: "test", code: 1)

    @Test func `ST-1 raw values are Apple's`() {
        let states: [Foundation.Stream.Status] = [
            .notOpen, .opening, .open, .reading, .writing, .atEnd, .closed, .error,
        ]
        #expect(states.map(\.rawValue) == Array(0...7))
        #expect(Foundation.Stream.Event.openCompleted.rawValue == 1)
        #expect(Foundation.Stream.Event.hasBytesAvailable.rawValue == 2)
        #expect(Foundation.Stream.Event.hasSpaceAvailable.rawValue == 4)
        #expect(Foundation.Stream.Event.errorOccurred.rawValue == 8)
        #expect(Foundation.Stream.Event.endEncountered.rawValue == 16)
    }

    @Test func `ST-2 opening acts only in notOpen`() {
        var state = StreamState(.input)
        #expect(state.status == .notOpen)
        check(state.open())
        check(!state.open())
        check(state.close())
        check(!state.open())
        #expect(state.status == .closed)
    }

    @Test func `ST-10 nothing is owed before opening and openCompleted once after it`() {
        var state = StreamState(.output)
        #expect(state.owed == [])
        _ = state.open()
        #expect(state.owed == [])
        state.opened(isScheduled: true, isReady: true)
        #expect(state.owed == [.openCompleted, .hasSpaceAvailable])
        check(state.take(.openCompleted))
        check(!state.take(.openCompleted))
        #expect(state.owed == .hasSpaceAvailable)
    }

    @Test func `ST-12 a stream that opens unscheduled loses openCompleted`() {
        var state = StreamState(.input)
        _ = state.open()
        state.opened(isScheduled: false, isReady: true)
        #expect(state.owed == .hasBytesAvailable)
    }

    @Test func `ST-13 ST-14 a stream's state owes one event until the client reacts`() {
        for direction in [StreamState.Direction.input, .output] {
            var state = open(direction, isReady: true)
            check(state.take(direction.event))
            #expect(!state.owed.contains(direction.event))
            state.setReady(true)
            #expect(!state.owed.contains(direction.event))
            state.used(isReady: false)
            #expect(!state.owed.contains(direction.event))
            #expect(state.wantsToBeReady)
            state.setReady(true)
            #expect(state.owed.contains(direction.event))
        }
    }

    @Test func `ST-15 ST-10 the end comes once and after it no bytes`() {
        var state = open(.input, isReady: true)
        state.used(isReady: false)
        state.ended()
        #expect(state.status == .atEnd)
        state.ended()
        state.setReady(true)
        #expect(state.owed == [.openCompleted, .endEncountered])
        check(state.take(.endEncountered))
        #expect(state.owed == [.openCompleted])
        #expect(state.mayTransfer)
    }

    @Test func `ST-16 ST-10 an error comes once and nothing follows it`() {
        var state = open(.input, isReady: true)
        _ = state.take(.openCompleted)
        state.ended()
        state.failed(error)
        #expect(state.owed == .errorOccurred)
        #expect(state.error == error)
        check(state.take(.errorOccurred))
        state.failed(NSError(domain: "other", code: 2))
        state.used(isReady: true)
        #expect(state.owed == [])
        #expect(state.error == error)
        #expect(!state.mayTransfer)
    }

    @Test func `ST-4 a stream that fails to open owes the error alone`() {
        var state = StreamState(.input)
        _ = state.open()
        state.failed(error)
        state.opened(isScheduled: true, isReady: true)
        #expect(state.owed == .errorOccurred)
    }

    @Test func `ST-5 ST-19 a closed stream owes nothing`() {
        var state = open(.output, isReady: true)
        check(state.close())
        #expect(state.owed == [])
        state.ended()
        state.failed(error)
        state.used(isReady: true)
        #expect(state.owed == [])
        #expect(state.status == .closed)
        #expect(state.error == nil)
        check(!state.close())
    }

    @Test func `ST-5 closing a stream that was never opened does nothing`() {
        var state = StreamState(.input)
        check(!state.close())
        #expect(state.status == .notOpen)
        check(state.open())
    }

    @Test func `ST-6 closing after an error leaves state and error`() {
        var state = open(.input, isReady: false)
        state.failed(error)
        check(state.close())
        #expect(state.status == .error)
        #expect(state.error == error)
        #expect(state.owed == [])
    }

    @Test func `ST-7 a stream may read and write while it is opening or open`() {
        var state = StreamState(.input)
        #expect(!state.mayTransfer)
        _ = state.open()
        #expect(state.mayTransfer)
        state.opened(isScheduled: false, isReady: false)
        #expect(state.mayTransfer)
        _ = state.close()
        #expect(!state.mayTransfer)
    }
}

import Foundation
import FoundationNetworking
import RondoHTTP
import Testing

@testable import RondoSessions

/// Tests the value that decides how a WebSocket opens and ends.
@Suite struct WebSocketTaskStateTests {
    private static func closing(_ code: Int) -> WebSocketTaskState.Closing {
        WebSocketTaskState.Closing(code: code, error: URLError(.cancelled))
    }

    @Test func `WS-18 a WebSocket that is cancelled before it is open does not open any more`() {
        var state = WebSocketTaskState.State()
        let closed = state.close(.empty, Self.closing(1000))
        let closedAgain = state.close(.empty, Self.closing(1000))
        let opened = state.open()
        #expect([closed, closedAgain, opened] == [false, false, false])
        #expect(!state.isOpen && !state.isEnding && !state.isOver)
        #expect(state.closing == nil)
        #expect(state.queues.close == nil)
    }

    @Test func `WS-17 a further close shortens the closing handshake and changes nothing else`() {
        var state = WebSocketTaskState.State()
        var answers = [state.open(), state.close(.empty, Self.closing(1000))]
        #expect(state.isOpen && state.isEnding)
        #expect(state.mayProlongClosing)
        answers.append(state.close(WebSocketClose(sending: 1001), Self.closing(1001)))
        state.beginEnding(Self.closing(1006))
        #expect(answers == [true, true, true])
        #expect(!state.mayProlongClosing)
        #expect(state.closing?.code == 1000)
        #expect(state.queues.close?.code == nil)
    }

    @Test func `WS-18 the end of a closed WebSocket leaves its code and its error`() {
        var state = WebSocketTaskState.State()
        _ = state.open()
        _ = state.close(.empty, Self.closing(1000))
        #expect(state.end(nil) == nil)
        #expect(state.isOver && !state.isOpen)
        #expect(state.closing?.code == 1000)
        #expect(state.closing?.error.code == .cancelled)
        let answer = state.close(.empty, Self.closing(1001))
        #expect(answer)
        #expect(state.closing?.code == 1000)
    }

    @Test func `US-69 an open WebSocket that ends without a closing handshake has the code 1006`() {
        var state = WebSocketTaskState.State()
        _ = state.open()
        let error = state.end(URLError(.timedOut)) as? URLError
        #expect(error?.code == .timedOut)
        #expect(state.closing?.code == 1006)
        #expect(state.closing?.error.code == .timedOut)
    }

    @Test func `WS-4 a handshake without a proper response is a bad response`() {
        let shown: [(failure: URLError.Code, code: URLError.Code)] = [
            (.networkConnectionLost, .badServerResponse), (.cannotParseResponse, .badServerResponse),
            (.cannotConnectToHost, .cannotConnectToHost),
        ]
        for (failure, code) in shown {
            var state = WebSocketTaskState.State()
            let error = state.end(URLError(failure)) as? URLError
            #expect(error?.code == code)
            #expect(state.closing?.code == 0)
            #expect(state.closing?.error.code == code)
            #expect(!state.isOpen && state.isOver)
        }
    }
}

import Rondo
import RondoTestSupport
import Testing

/// The actor on which the tasks of these tests run.
@globalActor private actor SendingActor {
    static let shared = SendingActor()
}

/// The order of operations that tasks on one actor begin.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct AsyncOrderTests {
    @Test func `WS-8 messages of tasks on one actor go in the order of these tasks`() async throws {
        let received = Box<[String]>([])
        let server = try socketServer { peer in
            for _ in 0..<1000 { received.value.append(try peer.readFrame().text) }
            try peer.send(text: "all")
            try peer.closeInTurn()
        }
        let session = URLSession(configuration: .ephemeral)
        let socket = session.webSocketTask(with: server.socketURL)
        socket.offersCompression = false
        socket.resume()
        let tasks = (0..<1000).map { number in
            Task { @SendingActor in try await socket.send(.string("\(number)")) }
        }
        for task in tasks { try await task.value }
        #expect(try await socket.receive().words == "text: all")
        #expect(received.value == (0..<1000).map(String.init))
        session.invalidateAndCancel()
        try waitFor("the task's end") { socket.state == .completed ? () : nil }
    }

    @Test func `US-89 writes of tasks on one actor are performed in the order of these tasks`() async throws {
        let received = Box<[String]>([])
        let server = try TestServer { peer in
            for _ in 0..<1000 { received.value.append(try peer.readLine()) }
            try peer.send("all")
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .ephemeral)
        let stream = session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        stream.resume()
        let tasks = (0..<1000).map { number in
            Task { @SendingActor in try await stream.write(Data("\(number)\n".utf8), timeout: 0) }
        }
        for task in tasks { try await task.value }
        #expect(try await stream.readData(ofMinLength: 3, maxLength: 3, timeout: 0).0 == Data("all".utf8))
        #expect(received.value == (0..<1000).map(String.init))
        session.invalidateAndCancel()
        try waitFor("the task's end") { stream.state == .completed ? () : nil }
    }
}

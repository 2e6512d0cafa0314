import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// How many connections wait for their peer's end. In processes of their own: the connections of other tests wait, too.
@Suite(.timeLimit(.minutes(5))) struct LingeringCloseTests {
    /// A client that is to be closed, and its peer, over TLS.
    private struct Connection {
        let socket: Socket
        let client: TLSEngine
        let server: BlockingTLSClient

        init() throws {
            let (ours, theirs) = try PlainSocket.pair()
            var size: Int32 = 4_096
            setsockopt(ours, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
            socket = try Socket(adopting: ours)
            client = try TLSEngine(
                context: .shared(for: .test), descriptor: socket.descriptor, hostName: "localhost")
            server = try BlockingTLSClient(accepted: theirs, settings: TLSServerTests.settings())
            var isDone = (client: false, server: false)
            while !isDone.client || !isDone.server {
                if !isDone.client { isDone.client = try client.handshake() == .done }
                if !isDone.server { isDone.server = try server.engine.handshake() == .done }
            }
        }
    }

    @Test func `ST-5 a close of which bytes are unsent waits though silent peers keep as many as may`() async
    {
        await #expect(processExitsWith: .success) {
            // All handshakes come first: what is closed waits for its peer for two seconds only.
            let silent = try (0..<LingeringClose.connectionLimit).map { _ in try Connection() }
            let last = try Connection()
            var sent = 0
            while !last.client.hasUnsentBytes {
                let result = try [UInt8](repeating: 7, count: 1_000).withUnsafeBytes {
                    try last.client.write($0)
                }
                if case .bytes(let count) = result { sent += count }
            }
            for one in silent {
                precondition(LingeringClose.begin(one.socket, one.client), "a close waits for its peer")
            }
            precondition(LingeringClose.begin(last.socket, last.client), "the last one waits as well")
            precondition(LingeringClose.count <= LingeringClose.connectionLimit, "no more than may")
            let (end, bytes) = try last.server.readToEnd()
            precondition(end == .end && bytes.count == sent, "\(end) after \(bytes.count) of \(sent) bytes")
        }
    }
}

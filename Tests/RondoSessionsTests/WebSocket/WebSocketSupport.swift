import Rondo
import RondoHTTP
import RondoMutex
import RondoTestSupport
import Testing

/// A delegate of WebSocket tasks that writes down what it is told: "open chat", "close 1000 bye", "complete -1011".
final class SocketNotes: NSObject, URLSessionWebSocketDelegate, Sendable {
    private let held = Mutex<[String]>([])

    var calls: [String] { held.withLock { $0 } }
    var isComplete: Bool { calls.last?.hasPrefix("complete") ?? false }

    func note(_ call: String) { held.withLock { $0.append(call) } }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol name: String?
    ) {
        note("open \(name ?? "-")")
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        note("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(error.map { "complete \(($0 as NSError).code)" } ?? "complete")
    }

    func waitForEnd() throws { try waitFor("the task's end") { isComplete ? () : nil } }
}

extension URLSessionWebSocketTask.Message {
    /// "text: …", "data: 5 bytes".
    var words: String {
        switch self {
        case .string(let text): "text: \(text)"
        case .data(let data): "data: \(data.count) bytes"
        }
    }
}

extension Result where Success == URLSessionWebSocketTask.Message, Failure == any Error {
    var words: String {
        switch self {
        case .success(let message): message.words
        case .failure(let error): "error \((error as NSError).code)"
        }
    }
}

/// A server that does the handshake by the rules, unless `change` makes another head of it, and then what `serve` does.
func socketServer(
    change: @escaping @Sendable (String) -> String = { $0 }, extra: String = "",
    beforeAnswer wait: @escaping @Sendable () throws -> Void = {},
    serve: @escaping @Sendable (TestPeer) throws -> Void
) throws -> TestServer {
    try TestServer { peer in
        let request = try peer.readRequest()
        try wait()
        let accept = WebSocketHandshake.accept(for: request.value("Sec-WebSocket-Key") ?? "") ?? ""
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(accept)\r\n\(extra)\r\n"
        try peer.send(change(head))
        try serve(peer)
    }
}

extension TestServer {
    var socketURL: URL { URL(string: url("/").absoluteString.replacingOccurrences(of: "http", with: "ws"))! }
}

/// Fills the kernel's buffers of this process's connection to `server`, which does not read, so that no byte more fits.
///
/// - Returns: The number of bytes that were sent.
@discardableResult
func fillConnection(to server: TestServer) throws -> Int {
    let descriptor = try #require(
        (0..<Int32(65_536)).first { descriptor in
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
            }
            return result == 0 && address.sin_family == sa_family_t(AF_INET)
                && address.sin_port == server.port.bigEndian
        })
    let bytes = [UInt8](repeating: 0, count: 65_536)
    // The kernel may deliver packets late, and then has room again. It is full if it says so and then takes nothing.
    var (total, isFull) = (0, false)
    for _ in 0..<100_000 {
        let before = total
        for size in [bytes.count, 1] {
            var (count, code): (Int, Int32) = (0, 0)
            repeat {
                total += count
                count = send(descriptor, bytes, size, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
                code = errno
            } while count > 0
            try #require(count < 0 && code == EAGAIN)
        }
        if isFull, total == before { return total }
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        isFull = poll(&entry, 1, 0) == 0
    }
    Issue.record("the connection was never full")
    return total
}

/// A frame of a client, unmasked.
struct ClientFrame: Equatable {
    let first: UInt8
    let payload: [UInt8]
    var text: String { String(decoding: payload, as: UTF8.self) }
}

extension TestPeer {
    func send(frame first: UInt8, _ payload: [UInt8] = []) throws {
        var frame: [UInt8] = [first]
        switch payload.count {
        case ..<126: frame.append(UInt8(payload.count))
        case ..<65536: frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default: frame += [127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        try send(frame + payload)
    }

    func send(text: String) throws { try send(frame: 0x81, Array(text.utf8)) }

    func send(close code: UInt16, _ reason: String = "") throws {
        try send(frame: 0x88, [UInt8(code >> 8), UInt8(code & 255)] + Array(reason.utf8))
    }

    /// Reads a frame up to its payload.
    func readFrameHead() throws -> (first: UInt8, length: Int, mask: [UInt8]) {
        let head = try read(count: 2)
        var length = Int(head[1] & 127)
        if length == 126 { length = try read(count: 2).reduce(0) { $0 << 8 | Int($1) } }
        if length == 127 { length = try read(count: 8).reduce(0) { $0 << 8 | Int($1) } }
        #expect(head[1] & 128 != 0, "a client's frame is not masked")
        return (head[0], length, try read(count: 4))
    }

    func readFrame() throws -> ClientFrame {
        let (first, length, mask) = try readFrameHead()
        let masked = length == 0 ? [] : try read(count: length)
        return ClientFrame(
            first: first, payload: masked.enumerated().map { $0.element ^ mask[$0.offset % 4] })
    }

    /// - Returns: The last of them.
    func readFrames(_ count: Int, into frames: Box<[ClientFrame]>) throws -> ClientFrame {
        var frame: ClientFrame
        repeat {
            frame = try readFrame()
            frames.mutate { $0.append(frame) }
        } while frames.value.count < count
        return frame
    }

    /// Reads until a close frame, answers it, and waits for the client to have read that.
    func closeInTurn() throws {
        while true {
            let frame = try readFrame()
            guard frame.first == 0x88 else { continue }
            return try send(frame: 0x88, frame.payload)
        }
    }
}

extension TestServerProcess {
    /// The URL of a server of `pythonSocketServer`, which says its port once.
    func socketURL() throws -> URL { URL(string: "ws://127.0.0.1:\(try port(after: "PORT "))/")! }
}

/// Debian's Python, which has the package `websockets`.
let socketPython = "/usr/bin/python3"

/// A server of Python's `websockets` that echoes what comes; "close 4001 text" closes, "name" says the protocol.
func pythonSocketServer(_ options: String = "", certificate: String? = nil, key: String? = nil) throws
    -> TestServerProcess
{
    let tls =
        certificate.map {
            "ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); ctx.load_cert_chain(\"\($0)\", \"\(key ?? $0)\")"
        } ?? "ctx = None"
    return try TestServerProcess([
        socketPython, "-u", "-c",
        """
        import asyncio, ssl, websockets
        \(tls)
        async def serve(ws, path=None):
            async for message in ws:
                if message == "name": await ws.send(str(ws.subprotocol))
                elif message == "extensions": await ws.send(",".join(e.name for e in ws.extensions))
                elif isinstance(message, str) and message.startswith("close "):
                    _, code, reason = message.split(" ", 2)
                    await ws.close(int(code), reason)
                elif message == "fragments": await ws.send(["a", "b", "c"])
                elif message == "ping": await (await ws.ping("x")); await ws.send("ponged")
                else: await ws.send(message)
        async def main():
            server = await websockets.serve(serve, "127.0.0.1", 0, ssl=ctx, max_size=None\(options))
            print("PORT", server.sockets[0].getsockname()[1])
            await asyncio.Future()
        asyncio.run(main())
        """,
    ])
}

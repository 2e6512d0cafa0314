import Rondo
import RondoMutex

// A server that knows none of Rondo's own code, so that what it sends can be trusted when Rondo is tried
// against it: blocking sockets and a thread for each connection.

/// Serves a `Site`, at a limited rate if wished.
final class FileServer: Sendable {
    private let site: Site
    private let rate: Int?
    private let state = Mutex(State())

    private struct State {
        var listener: Int32 = -1
        var connections = 0
    }

    /// - Parameter rate: bytes a second on each connection; nil for as fast as it goes.
    init(site: Site, rate: Int?) {
        self.site = site
        self.rate = rate
    }

    /// Begins to listen, and returns `address:port`.
    func listen(address: String, port: UInt16) throws(ServerSocket.Failure) -> String {
        let (descriptor, name) = try ServerSocket.listen(address: address, port: port)
        state.withLock { $0.listener = descriptor }
        return name
    }

    /// Takes clients for ever.
    func serve() -> Never {
        let listener = state.withLock { $0.listener }
        while true {
            guard let client = ServerSocket.accept(listener) else { continue }
            guard admit() else {
                refuseForNow(client)
                continue
            }
            do throws(SystemError) {
                try SystemThread.start(name: "connection") {
                    self.serve(client)
                    close(client)
                    self.state.withLock { $0.connections -= 1 }
                }
            } catch {
                state.withLock { $0.connections -= 1 }
                refuseForNow(client)
            }
        }
    }

    private func admit() -> Bool {
        state.withLock {
            guard $0.connections < ServerLimits.connections else { return false }
            $0.connections += 1
            return true
        }
    }

    private func refuseForNow(_ client: Int32) {
        let response = ServedResponse(
            status: 503, reason: "Service Unavailable", type: "text/plain", length: 0, keepsConnection: false)
        _ = sendText(response.head, to: client)
        close(client)
    }

    // MARK: One connection, on its own thread

    private func serve(_ client: Int32) {
        ServerSocket.setOption(TCP_NODELAY, 1, of: client, level: Int32(IPPROTO_TCP))
        if rate != nil {
            ServerSocket.setOption(SO_SNDBUF, ServerLimits.throttledSendBuffer, of: client, level: SOL_SOCKET)
        }
        limitStalls(of: client)
        var reader = HeadReader(descriptor: client)
        while true {
            do {
                guard let head = try reader.next() else { return }
                let request = try ServedRequest(head: head)
                guard answer(request, to: client), request.keepsConnection else { break }
            } catch {
                refuse(error, to: client)
                break
            }
        }
        linger(client)
    }

    private func limitStalls(of client: Int32) {
        var time = timeval(tv_sec: ServerLimits.stallTime, tv_usec: 0)
        _ = setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// False if the client has gone, or was promised more than could be sent.
    private func answer(_ request: ServedRequest, to client: Int32) -> Bool {
        switch site.content(for: request.target) {
        case .bytes(let count):
            return send(count, of: "application/octet-stream", for: request, to: client) { buffer, offset in
                Site.fill(buffer, from: offset)
                return buffer.count
            }
        case .file(let descriptor, let size, let type):
            defer { close(descriptor) }
            return send(size, of: type, for: request, to: client) { buffer, offset in
                pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            }
        case .missing:
            let text = "There is nothing here.\n"
            let response = ServedResponse(
                status: 404, reason: "Not Found", type: "text/plain", length: text.utf8.count,
                keepsConnection: request.keepsConnection)
            return sendText(response.head + (request.method == .head ? "" : text), to: client)
        }
    }

    private func refuse(_ refusal: ServedRequest.Refusal, to client: Int32) {
        let text = refusal.reason + "\n"
        let response = ServedResponse(
            status: refusal.rawValue, reason: refusal.reason, type: "text/plain", length: text.utf8.count,
            keepsConnection: false)
        _ = sendText(response.head + text, to: client)
    }

    /// Sends head and body, `fill` giving the bytes from an offset on: how many, or none if it cannot.
    private func send(
        _ count: Int, of type: String, for request: ServedRequest, to client: Int32,
        fill: (UnsafeMutableRawBufferPointer, Int) -> Int
    ) -> Bool {
        let response = ServedResponse(
            status: 200, reason: "OK", type: type, length: count, keepsConnection: request.keepsConnection)
        guard sendText(response.head, to: client) else { return false }
        if request.method == .head { return true }

        let clock = ContinuousClock.now
        var pace = rate.map { Pace(rate: $0) }
        var piece = [UInt8](
            repeating: 0, count: min(pace?.slice ?? ServerLimits.pieceSize, ServerLimits.pieceSize))
        var offset = 0
        while offset < count {
            let sent = piece.withUnsafeMutableBytes { piece in
                let wanted = UnsafeMutableRawBufferPointer(rebasing: piece.prefix(count - offset))
                let filled = fill(wanted, offset)
                guard filled > 0 else { return 0 }
                if let pause = pace?.pause(before: filled, now: (ContinuousClock.now - clock) / .seconds(1)) {
                    Thread.sleep(forTimeInterval: pause)
                }
                return ServerSocket.send(client, UnsafeRawBufferPointer(rebasing: wanted.prefix(filled)))
                    ? filled : 0
            }
            guard sent > 0 else { return false }
            offset += sent
        }
        return true
    }

    private func sendText(_ text: String, to client: Int32) -> Bool {
        var text = text
        return text.withUTF8 { ServerSocket.send(client, UnsafeRawBufferPointer($0)) }
    }

    /// Lets the client read the answer to the end: closing with bytes unread would reset the connection.
    private func linger(_ client: Int32) {
        shutdown(client, Int32(SHUT_WR))
        var waste = [UInt8](repeating: 0, count: 4096)
        let deadline = ContinuousClock.now + .seconds(ServerLimits.lingerTime)
        while ContinuousClock.now < deadline,
            ServerSocket.waitToRead(client, seconds: ServerLimits.lingerTime),
            waste.withUnsafeMutableBytes({ ServerSocket.receive(client, into: $0) }) > 0
        {}
    }
}

internal import FoundationNetworking
package import RondoCore
internal import RondoMutex

/// A server of plain blocking sockets on threads of its own, with nothing of ours in it: each accepted
/// connection is served by a script, which says and does what no real server would.
///
/// It lives until `stop()`, the end of a suite that `leavesNothing`, or the end of the process, so that no test has
/// to hold on to it.
package final class TestServer: Sendable {
    /// The kind of address on which a server listens.
    package enum Listening: Sendable {
        case ipv4, ipv6
    }

    package let port: UInt16
    private let listener: Int32
    private let state = Mutex(State())
    private let listening: Listening

    private struct State {
        var accepted = 0
        var peers: [TestPeer] = []
        var requests: [TestRequest] = []
        var isStopped = false
    }

    /// - Parameter serve: Called for each connection on a thread of its own, the first with number 0. The
    ///   connection is closed when it returns, and when it throws because the client has gone.
    package init(_ listening: Listening = .ipv4, serve: @escaping @Sendable (TestPeer) throws -> Void) throws
    {
        self.listening = listening
        SharedCache.isEmptied
        (listener, port) = try Self.listenOnNewPort(listening)
        Self.scope?.add(self)
        Thread.detachNewThread { [self] in acceptAll(serve) }
    }

    /// Makes a server that answers every request, and keeps its connections.
    ///
    /// - Parameter body: Makes the body of an answer.
    package static func answering(
        with body: @escaping @Sendable (TestRequest) -> String
    ) throws -> TestServer {
        try TestServer { peer in
            while true { try peer.respond(body: body(try peer.readRequest())) }
        }
    }

    /// Makes a server that redirects each request for `path` to `target`, answers every other one, and keeps
    /// its connections.
    ///
    /// - Parameters:
    ///   - moved: The body of a redirect.
    ///   - body: Makes the body of an answer.
    package static func redirecting(
        _ path: String, to target: String, _ status: String = "302 Found", moved: String = "",
        answering body: @escaping @Sendable (TestRequest) -> String
    ) throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == path {
                    try peer.respond(status, ["Location: \(target)"], body: moved)
                } else {
                    try peer.respond(body: body(request))
                }
            }
        }
    }

    /// Makes a server that answers the first request of a connection with `first`, and with `second` once
    /// `latch` is open. Then it waits for the client to end the connection.
    package static func sending(
        _ first: String, until latch: Latch, then second: String
    ) throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(first)
            try latch.wait()
            try peer.send(second)
            peer.waitForEnd()
        }
    }

    /// The servers that the tests of a suite have made.
    package final class Scope: Sendable {
        private let servers = Mutex<[TestServer]>([])

        package init() {}

        fileprivate func add(_ server: TestServer) { servers.withLock { $0.append(server) } }

        package func stopAll() { for server in servers.withLock({ $0 }) { server.stop() } }
    }

    /// The scope that notes the servers which this task makes.
    @TaskLocal package static var scope: Scope?

    /// `http://127.0.0.1:port/path`.
    package func url(_ path: String = "/") -> URL {
        let host = listening == .ipv4 ? "127.0.0.1" : "[::1]"
        guard let url = URL(string: "http://\(host):\(port)\(path)") else { fatalError("no URL: \(path)") }
        return url
    }

    /// The number of connections that were accepted so far.
    package var accepted: Int { state.withLock { $0.accepted } }

    /// The number of connections that are served now: those that neither side has ended.
    package var served: Int { state.withLock { $0.peers.count } }

    /// The requests that were read so far, in order of their arrival.
    package var requests: [TestRequest] { state.withLock { $0.requests } }

    /// Accepts no more, and breaks the connections that are left.
    package func stop() {
        let peers = state.withLock { state -> [TestPeer]? in
            guard !state.isStopped else { return nil }
            state.isStopped = true
            defer { state.peers = [] }
            return state.peers
        }
        guard let peers else { return }
        // Wakes the thread that accepts, which closes it.
        _ = shutdown(listener, Int32(SHUT_RDWR))
        for peer in peers { peer.shutDown() }
    }

    fileprivate func note(_ request: TestRequest) {
        state.withLock { $0.requests.append(request) }
    }

    private func acceptAll(_ serve: @escaping @Sendable (TestPeer) throws -> Void) {
        defer { _ = close(listener) }
        while true {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            var on: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            let number = state.withLock { state -> Int? in
                guard !state.isStopped else { return nil }
                defer { state.accepted += 1 }
                return state.accepted
            }
            guard let number else {
                _ = close(descriptor)
                return
            }
            let peer = TestPeer(descriptor, number: number, server: self)
            state.withLock { $0.peers.append(peer) }
            Thread.detachNewThread { [self] in
                // What a script throws is that the client has gone.
                try? serve(peer)
                peer.close()
                state.withLock { $0.peers.removeAll { $0 === peer } }
            }
        }
    }

    private static let usedPorts = Mutex<Set<UInt16>>([])

    /// On a port that no server of this process has had: what is kept of that one, connections and answers, must
    /// not be taken for those of this.
    private static func listenOnNewPort(_ listening: Listening) throws -> (Int32, UInt16) {
        // Held until there is a new one, so that none is given out twice.
        var refused: [Int32] = []
        defer { for descriptor in refused { _ = close(descriptor) } }
        while true {
            let (descriptor, port) = try listen(listening)
            if usedPorts.withLock({ $0.insert(port).inserted }) { return (descriptor, port) }
            refused.append(descriptor)
        }
    }

    private static func listen(_ listening: Listening) throws -> (Int32, UInt16) {
        let family = listening == .ipv4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { throw TestServerProcess.Failure(description: "no socket") }
        var size: socklen_t
        let bound: Int32
        var port: UInt16 = 0
        switch listening {
        case .ipv4:
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            size = socklen_t(MemoryLayout<sockaddr_in>.size)
            bound = withPointer(to: &address) { bind(descriptor, $0, size) }
            _ = withPointer(to: &address) { getsockname(descriptor, $0, &size) }
            port = UInt16(bigEndian: address.sin_port)
        case .ipv6:
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_addr = in6addr_loopback
            size = socklen_t(MemoryLayout<sockaddr_in6>.size)
            bound = withPointer(to: &address) { bind(descriptor, $0, size) }
            _ = withPointer(to: &address) { getsockname(descriptor, $0, &size) }
            port = UInt16(bigEndian: address.sin6_port)
        }
        guard bound == 0, Glibc.listen(descriptor, 64) == 0 else {
            _ = close(descriptor)
            throw TestServerProcess.Failure(description: "cannot listen: \(String(cString: strerror(errno)))")
        }
        return (descriptor, port)
    }

    private static func withPointer<Address, Result>(
        to address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0) }
        }
    }
}

/// A request as it was read from the socket.
package struct TestRequest: Sendable {
    /// The lines of the head, the request line first.
    package let lines: [String]
    package let body: Data

    package var method: String { words[0] }
    package var target: String { words[1] }
    private var words: [String] { (lines.first ?? "").split(separator: " ").map(String.init) + ["", ""] }

    /// The value of a field, by its name in any case.
    package func value(_ name: String) -> String? {
        let prefix = name.lowercased() + ":"
        return lines.dropFirst().first { $0.lowercased().hasPrefix(prefix) }
            .map { $0.dropFirst(prefix.count).trimmingCharacters(in: .whitespaces) }
    }
}

/// The server's end of one connection. Its script's thread calls everything here but `shutDown`.
package final class TestPeer: Sendable {
    /// The peer has closed the connection, or broken it.
    package struct Gone: Error {}

    /// The number of connections that the server had accepted before this one.
    package let number: Int
    private let descriptor: Mutex<Int32>
    private let unread = Mutex<[UInt8]>([])
    private let server: TestServer

    fileprivate init(_ descriptor: Int32, number: Int, server: TestServer) {
        self.descriptor = Mutex(descriptor)
        self.number = number
        self.server = server
    }

    /// Reads a request with its body.
    package func readRequest() throws -> TestRequest {
        let head = try readHead()
        let request = TestRequest(lines: head.lines, body: try readBody(of: head))
        server.note(request)
        return request
    }

    /// Reads a request's head only; what of its body has come already is kept for `readBody(of:)`.
    package func readHead() throws -> TestRequest {
        let end = Array("\r\n\r\n".utf8)
        while true {
            let head = unread.withLock { unread -> [UInt8]? in
                guard let range = unread.firstRange(of: end) else { return nil }
                defer { unread.removeFirst(range.upperBound) }
                return Array(unread[..<range.lowerBound])
            }
            if let head {
                return TestRequest(
                    lines: String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n"), body: Data()
                )
            }
            try readMore()
        }
    }

    /// Reads the body of a request whose head was read, of a known length or in chunks.
    package func readBody(of request: TestRequest) throws -> Data {
        if request.value("Transfer-Encoding")?.lowercased() == "chunked" { return try readChunks() }
        guard let length = request.value("Content-Length").flatMap({ Int($0) }) else { return Data() }
        return try readBytes(length)
    }

    /// Reads a line, without its end.
    package func readLine() throws -> String {
        while true {
            let line = unread.withLock { unread -> String? in
                guard let end = unread.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            if let line { return line }
            try readMore()
        }
    }

    /// Reads so many bytes.
    package func read(count: Int) throws -> [UInt8] {
        while true {
            let bytes = unread.withLock { unread -> [UInt8]? in
                guard unread.count >= count else { return nil }
                defer { unread.removeFirst(count) }
                return Array(unread[..<count])
            }
            if let bytes { return bytes }
            try readMore()
        }
    }

    /// Passes bytes on in both directions, between the client and a port of this machine, until either ends.
    package func relay(to port: UInt16) throws {
        let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { _ = Glibc.close(other) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(other, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw Gone() }
        let ours = descriptor.withLock { $0 }
        var entries = [ours, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            guard poll(&entries, 2, -1) > 0 || errno == EINTR else { throw Gone() }
            for (index, entry) in entries.enumerated() where entry.revents != 0 {
                let count = recv(entry.fd, &bytes, bytes.count, 0)
                guard count > 0 else { return }
                var sent = 0
                while sent < count {
                    let to = entries[1 - index].fd
                    let moved = bytes.withUnsafeBytes {
                        Glibc.send(to, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
                    }
                    guard moved > 0 else { return }
                    sent += moved
                }
            }
        }
    }

    /// Waits until the client has closed its side; what it sends until then is dropped.
    package func waitForEnd() {
        while (try? readMore()) != nil { unread.withLock { $0 = [] } }
    }

    /// Whether a byte of a body has come; waits for nothing.
    package var hasUnread: Bool {
        var byte: UInt8 = 0
        let flags = Int32(MSG_PEEK | MSG_DONTWAIT)
        return unread.withLock { !$0.isEmpty } || recv(descriptor.withLock { $0 }, &byte, 1, flags) > 0
    }

    /// Nothing can be sent now: the client does not read, and the kernel takes no more.
    package var cannotSend: Bool {
        var entry = pollfd(fd: descriptor.withLock { $0 }, events: Int16(POLLOUT), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    /// Reads the next chunk; nil: it was the last one.
    package func readChunk() throws -> Data? {
        let size = Int(try readLine().trimmingCharacters(in: .whitespaces.union(.newlines)), radix: 16) ?? 0
        let chunk = try readBytes(size)
        _ = try readLine()
        return size > 0 ? chunk : nil
    }

    private func readChunks() throws -> Data {
        var body = Data()
        while let chunk = try readChunk() { body.append(chunk) }
        return body
    }

    /// Reads so many bytes of a body.
    package func readBytes(_ count: Int) throws -> Data {
        while true {
            let bytes = unread.withLock { unread -> Data? in
                guard unread.count >= count else { return nil }
                defer { unread.removeFirst(count) }
                return Data(unread.prefix(count))
            }
            if let bytes { return bytes }
            try readMore()
        }
    }

    private func readMore() throws {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor.withLock { $0 }, &bytes, bytes.count, 0)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw Gone() }
            unread.withLock { $0 += bytes[..<count] }
            return
        }
    }

    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(
                    descriptor.withLock { $0 }, buffer.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw Gone() }
            sent += count
        }
    }

    /// Sends a whole response with a Content-Length.
    package func respond(
        _ status: String = "200 OK", _ fields: [String] = [], body: String = ""
    ) throws {
        let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.utf8.count)"]
        try send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    }

    /// No more bytes will come from here.
    package func finish() {
        _ = shutdown(descriptor.withLock { $0 }, Int32(SHUT_WR))
    }

    /// Both directions, from any thread: a thread that waits in a read or write returns.
    package func shutDown() {
        descriptor.withLock { if $0 >= 0 { _ = shutdown($0, Int32(SHUT_RDWR)) } }
    }

    package func close() {
        descriptor.withLock { descriptor in
            if descriptor >= 0 { _ = Glibc.close(descriptor) }
            descriptor = -1
        }
    }

    /// Closes with a RST in place of a FIN.
    package func reset() {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor.withLock { $0 }, SOL_SOCKET, SO_LINGER, &linger,
            socklen_t(MemoryLayout<Glibc.linger>.size))
        close()
    }
}

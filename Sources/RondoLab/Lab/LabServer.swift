import Rondo
internal import RondoMutex

/// The server of the experiments: blocking sockets, one thread for each connection, and none of Rondo's own
/// code, so that its bytes can be trusted.
///
///     /drip/PIECES/BYTES/MILLISECONDS   that many pieces of that many bytes, with a pause between two
///     /redirect                         302 to /drip/1/5/0
///     /upload                           the number of bytes in the request's body
///     /secret                           5 bytes for user "user" with password "secret", else 401
///     /camera                           multipart/x-mixed-replace: parts of 5, 10 and 15 bytes
///     /news/SECONDS/NAME                N bytes at the Nth request, fresh for that many seconds;
///                                       304 if the client has the current version
///     /requests/news/SECONDS/NAME       the Cache-Control fields of the requests for these news, a line each
///     anything else                     404
///
/// It listens only on 127.0.0.1.
package final class LabServer: Sendable {
    enum Limits {
        static let headSize = 16 << 10
        static let bodySize = 1 << 30
        /// Seconds within which a client must send or read.
        static let patience = 30
        static let pieces = 100_000
        static let pieceSize = 1 << 20
        /// Seconds without a new client where there is no descriptor for one.
        static let rest = 0.05
        /// The number of requests for news that are recorded; further ones are not.
        static let requests = 10_000
    }

    private let listener: Int32
    private let port: UInt16
    private let isStopped = Mutex(false)
    private let news = Mutex<[(target: String, cacheControl: String)]>([])

    package init() throws(StageFailure) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 64) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard listener >= 0, status else {
            let reason = String(cString: strerror(errno))
            if listener >= 0 { close(listener) }
            throw .noServer(reason)
        }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept() }
    }

    /// The prefix of the paths.
    package var address: String { "http://127.0.0.1:\(port)" }

    func url(_ path: String) -> URL {
        URL(string: address + path) ?? URL(fileURLWithPath: "/")
    }

    /// The Cache-Control fields of the requests for these news, in the order of arrival.
    func requests(for url: URL) -> [String] {
        news.withLock { $0.filter { $0.target == url.path }.map(\.cacheControl) }
    }

    /// Accepts no more clients; connections in progress end by themselves.
    func stop() {
        isStopped.withLock { $0 = true }
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func accept() {
        while !isStopped.withLock({ $0 }) {
            let client = Foundation.accept(listener, nil, nil)
            guard client >= 0 else {
                let code = errno
                if code == EINTR || code == ECONNABORTED { continue }
                // A connection that ends leaves a descriptor, or memory, to the next one.
                guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) else { break }
                Thread.sleep(forTimeInterval: Limits.rest)
                continue
            }
            Thread.detachNewThread { [self] in
                serve(client)
                close(client)
            }
        }
        close(listener)
    }

    private func serve(_ client: Int32) {
        var time = timeval(tv_sec: Limits.patience, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(client, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
        }
        var one: Int32 = 1
        setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var reader = ClientReader(descriptor: client)
        guard let request = reader.head() else { return }
        let parts = request.target.split(separator: "/").map(String.init)
        switch parts.first {
        case "drip" where parts.count == 4:
            let numbers = parts.dropFirst().map { max(0, Int($0) ?? 0) }
            drip(
                client, pieces: min(numbers[0], Limits.pieces), size: min(numbers[1], Limits.pieceSize),
                rest: Double(numbers[2]) / 1000)
        case "redirect":
            _ = send(client, head("302 Found", length: 6, more: "Location: /drip/1/5/0\r\n") + "moved\n")
        case "upload":
            let count = String(reader.bodySize(of: request))
            _ = send(client, head("200 OK", length: count.utf8.count) + count)
        case "secret":
            // "user:secret" in Base64 (RFC 7617).
            if request.fields["authorization"] == "Basic dXNlcjpzZWNyZXQ=" {
                drip(client, pieces: 1, size: 5, rest: 0)
            } else {
                _ = send(
                    client,
                    head("401 Unauthorized", length: 0, more: "WWW-Authenticate: Basic realm=\"lab\"\r\n"))
            }
        case "camera":
            camera(client)
        case "news" where parts.count == 3:
            answer(client, newsFor: request, lifetime: max(0, Int(parts[1]) ?? 0))
        case "requests":
            let lines = requestLines(for: request.target)
            _ = send(client, head("200 OK", length: lines.utf8.count) + lines)
        default:
            _ = send(client, head("404 Not Found", length: 0))
        }
    }

    /// The lines of `/requests/news/…`.
    private func requestLines(for target: String) -> String {
        let asked = news.withLock { $0.filter { "/requests" + $0.target == target }.map(\.cacheControl) }
        return asked.map { $0 + "\n" }.joined()
    }

    private func drip(_ client: Int32, pieces: Int, size: Int, rest: Double) {
        guard send(client, head("200 OK", length: pieces * size)) else { return }
        let piece = String(repeating: "r", count: size)
        for number in 0..<pieces {
            if number > 0, rest > 0 { Thread.sleep(forTimeInterval: rest) }
            guard send(client, piece) else { return }
        }
    }

    private func camera(_ client: Int32) {
        let type = "multipart/x-mixed-replace; boundary=frame"
        var text = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nConnection: close\r\n\r\n--frame\r\n"
        for (number, type) in ["text/plain", "text/plain", "text/html"].enumerated() {
            if number > 0 { Thread.sleep(forTimeInterval: 0.05) }
            text += "Content-Type: \(type)\r\n\r\n" + String(repeating: "r", count: (number + 1) * 5)
            // A part ends with the next boundary.
            guard send(client, text + (number == 2 ? "\r\n--frame--\r\n" : "\r\n--frame\r\n")) else { return }
            text = ""
        }
    }

    private func answer(_ client: Int32, newsFor request: ClientReader.Request, lifetime: Int) {
        let version = news.withLock { news -> Int in
            if news.count < Limits.requests {
                news.append((request.target, request.fields["cache-control"] ?? ""))
            }
            return news.count { $0.target == request.target }
        }
        let fields = "Cache-Control: max-age=\(lifetime)\r\nETag: \"news\"\r\n"
        if request.fields["if-none-match"] == "\"news\"" {
            _ = send(client, head("304 Not Modified", more: fields))
        } else {
            _ = send(
                client,
                head("200 OK", length: version, more: fields) + String(repeating: "n", count: version))
        }
    }

    private func head(_ status: String, length: Int? = nil, more: String = "") -> String {
        let content = length.map { "Content-Length: \($0)\r\nContent-Type: text/plain\r\n" } ?? ""
        return "HTTP/1.1 \(status)\r\n\(content)Connection: close\r\n\(more)\r\n"
    }

    private func send(_ client: Int32, _ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Foundation.send(
                    client, buffer.baseAddress?.advanced(by: sent), bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                return false
            }
            sent += count
        }
        return true
    }
}

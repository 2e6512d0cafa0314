import Rondo

/// A server that answers each request with a body of 20,000 bytes, with a thread for each connection.
final class AnsweringServer: Sendable {
    let port: UInt16
    private let listener: Int32
    /// The threads that serve a connection.
    private let serving = DispatchGroup()

    init() {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 1024) == 0
                    ? getsockname(listener, $0, &size) : -1
            }
        }
        precondition(status == 0, "the server has no port")
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in acceptAll() }
    }

    /// Waits until no connection is served.
    ///
    /// - Returns: False: some are at that time.
    func waitForConnections(until limit: Date) -> Bool {
        serving.wait(timeout: .now() + limit.timeIntervalSinceNow) == .success
    }

    private func acceptAll() {
        while true {
            let peer = accept(listener, nil, nil)
            guard peer >= 0 else { continue }
            serving.enter()
            Thread.detachNewThread { [self] in
                Self.serve(peer)
                close(peer)
                serving.leave()
            }
        }
    }

    private static func serve(_ peer: Int32) {
        let body = 20_000
        let answer =
            Array("HTTP/1.1 200 OK\r\nContent-Length: \(body)\r\n\r\n".utf8)
            + [UInt8](repeating: 1, count: body)
        var received: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while true {
            // A request has no body: it ends with an empty line.
            while let end = received.firstIndex(of: 10, behind: [13, 10, 13]) {
                received.removeFirst(end + 1)
                var sent = 0
                while sent < answer.count {
                    let count = answer[sent...].withUnsafeBytes {
                        send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                    }
                    guard count > 0 else { return }
                    sent += count
                }
            }
            let count = recv(peer, &piece, piece.count, 0)
            guard count > 0 else { return }
            received += piece[..<count]
        }
    }
}

extension [UInt8] {
    /// The first index of `byte` after these bytes.
    fileprivate func firstIndex(of byte: UInt8, behind before: [UInt8]) -> Int? {
        guard count > before.count else { return nil }
        return (before.count..<count).first { index in
            self[index] == byte && self[(index - before.count)..<index].elementsEqual(before)
        }
    }
}

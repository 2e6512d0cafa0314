import Rondo

/// Takes one request head after the other from a connection.
struct HeadReader {
    private let descriptor: Int32
    private var bytes: [UInt8] = []

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// The next head without its empty line; nil at the end of the connection, or when nothing came.
    mutating func next() throws(ServedRequest.Refusal) -> String? {
        var deadline: ContinuousClock.Instant?
        while true {
            if !bytes.isEmpty, deadline == nil { deadline = .now + .seconds(ServerLimits.headTime) }
            if let head = takeHead() { return head }
            guard bytes.count < ServerLimits.headSize else { throw .headTooLarge }
            let time = deadline.map { ($0 - .now) / .seconds(1) } ?? ServerLimits.idleTime
            guard ServerSocket.waitToRead(descriptor, seconds: time) else {
                if bytes.isEmpty { return nil }
                throw .requestTimeout
            }
            guard receive() else { return nil }
        }
    }

    private mutating func receive() -> Bool {
        var piece = [UInt8](repeating: 0, count: 4096)
        let count = piece.withUnsafeMutableBytes { ServerSocket.receive(descriptor, into: $0) }
        guard count > 0 else { return false }
        bytes.append(contentsOf: piece[..<count])
        return true
    }

    private mutating func takeHead() -> String? {
        let end: [UInt8] = [13, 10, 13, 10]
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return nil }
        let head = String(decoding: bytes[..<start], as: UTF8.self)
        bytes.removeFirst(start + end.count)
        return head
    }
}

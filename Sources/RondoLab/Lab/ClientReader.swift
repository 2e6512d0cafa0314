import Rondo

/// Reads the requests of a client of the lab's server, as far as the experiments need.
struct ClientReader {
    struct Request {
        let target: String
        /// Keys are in lower case; of several fields with one name, the last counts.
        let fields: [String: String]
    }

    private let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 32 << 10)
    private var next = 0
    private var end = 0

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// - Returns: Nil at the end, after an error, and after the time limit of the server.
    private mutating func byte() -> UInt8? {
        if next == end {
            var count = 0
            // A program that was stopped and goes on has its calls interrupted.
            repeat {
                count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            } while count < 0 && errno == EINTR
            guard count > 0 else { return nil }
            (next, end) = (0, count)
        }
        defer { next += 1 }
        return buffer[next]
    }

    private mutating func line(limit: Int) -> String? {
        var bytes: [UInt8] = []
        while let byte = byte(), bytes.count < limit {
            if byte == UInt8(ascii: "\n") {
                if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
                return String(decoding: bytes, as: UTF8.self)
            }
            bytes.append(byte)
        }
        return nil
    }

    /// - Returns: Nil if there is no valid head.
    mutating func head() -> Request? {
        var left = LabServer.Limits.headSize
        guard let first = line(limit: left) else { return nil }
        let words = first.split(separator: " ")
        guard words.count == 3 else { return nil }
        var fields: [String: String] = [:]
        while let line = line(limit: left) {
            if line.isEmpty { return Request(target: String(words[1]), fields: fields) }
            left -= line.utf8.count
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            fields[line[..<colon].lowercased()] = value
        }
        return nil
    }

    /// Reads the body and discards it.
    ///
    /// - Returns: Its length; if it breaks off, the number of bytes that arrived.
    mutating func bodySize(of request: Request) -> Int {
        guard request.fields["transfer-encoding"]?.lowercased() == "chunked" else {
            return skip(Int(request.fields["content-length"] ?? "") ?? 0)
        }
        var size = 0
        while size < LabServer.Limits.bodySize, let line = line(limit: 64),
            let chunk = Int(line.prefix { $0 != ";" }, radix: 16), chunk >= 0
        {
            if chunk == 0 {
                _ = self.line(limit: 64)
                break
            }
            size += skip(chunk)
            _ = self.line(limit: 8)
        }
        return size
    }

    private mutating func skip(_ count: Int) -> Int {
        var skipped = 0
        while skipped < count {
            if next < end {
                let step = min(end - next, count - skipped)
                next += step
                skipped += step
            } else {
                guard byte() != nil else { break }
                skipped += 1
            }
        }
        return skipped
    }
}

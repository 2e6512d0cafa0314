/// Splits the bytes of a connection into messages. An error is a state that is never left.
package struct WireReader: Sendable {
    /// The most bytes of consumed messages that may stay in the buffer: as many as one read brings.
    private static let retainedBytes = 65_536

    private var buffer: [UInt8] = []
    /// The start of the bytes that no message has consumed yet.
    private var start = 0
    private var failure: WireError?

    package init() {}

    /// The number of bytes that wait for the rest of their message.
    package var count: Int { buffer.count - start }

    /// The memory held, in bytes; for tests.
    var memory: Int { buffer.capacity }

    package mutating func receive(_ bytes: UnsafeRawBufferPointer) {
        guard failure == nil else { return }
        if start > buffer.count / 2 {
            buffer.removeFirst(start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next message; nil: more bytes are needed.
    ///
    /// - Parameter maximum: The length in bytes of the longest message that is accepted.
    package mutating func next(maximum: Int) throws(WireError) -> WireMessage? {
        if let failure { throw failure }
        do throws(WireError) {
            let size = try size(maximum: maximum)
            guard let size, count >= size else { return nil }
            let part = start..<start + size
            let message = buffer.withUnsafeBytes { bytes in
                Result { () throws(WireError) in
                    try WireMessage(UnsafeRawBufferPointer(rebasing: bytes[part]))
                }
            }
            start += size
            releaseTaken()
            return try message.get()
        } catch {
            failure = error
            (buffer, start) = ([], 0)
            throw error
        }
    }

    /// Frees the memory of a large message: otherwise a peer that sends only the beginning of another one
    /// behind it would keep that memory in use, while `count` is small.
    private mutating func releaseTaken() {
        if start == buffer.count {
            (buffer, start) = ([], 0)
        } else if start > Self.retainedBytes {
            // A new array, because removing bytes from an array keeps its capacity.
            (buffer, start) = (Array(buffer[start...]), 0)
        }
    }

    /// The length of the message at `start`; nil: it has not arrived yet. A wrong magic number is reported as
    /// soon as it is there.
    private func size(maximum: Int) throws(WireError) -> Int? {
        let (magic, length) = buffer.withUnsafeBytes { bytes in
            (bytes.number(at: start), bytes.number(at: start + 4))
        }
        guard let magic else { return nil }
        guard magic == WireMessage.magic else { throw .wrongMagic(magic) }
        guard let length else { return nil }
        guard Int(length) >= WireMessage.leastSize, Int(length) <= maximum else {
            throw .wrongLength(length)
        }
        return Int(length)
    }
}

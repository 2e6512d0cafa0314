/// Takes the bytes of a connection as they come, and gives messages. An error is a state that is never left.
package struct WireReader: Sendable {
    /// Bytes of messages that were taken and may stay in the buffer: fewer than one read brings.
    private static let keptBytes = 65_536

    private var buffer: [UInt8] = []
    /// Where the bytes begin that no message has taken yet.
    private var start = 0
    private var failure: WireError?

    package init() {}

    /// How many bytes wait for the rest of their message.
    package var count: Int { buffer.count - start }

    /// The memory that it holds, in bytes; for tests.
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
    /// - Parameter maximum: The length, in bytes, of the longest message that is taken.
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

    /// Gives the memory of a large message back: a peer that sends the beginning of another one behind it, and then nothing,
    /// would hold that memory while `count` says next to nothing.
    private mutating func releaseTaken() {
        if start == buffer.count {
            (buffer, start) = ([], 0)
        } else if start > Self.keptBytes {
            // A new array: one from which bytes are removed keeps its capacity.
            (buffer, start) = (Array(buffer[start...]), 0)
        }
    }

    /// The length of the message that begins here; nil: it has not come yet. A wrong magic number is found as soon as it
    /// is there.
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

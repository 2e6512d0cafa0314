// Turns the bytes of frames into messages and control frames. The reader knows the grammar and its position
// in a message, but not which side has closed.
//
// Bytes are read in place. Between calls the reader stores an unfinished header (under 14 bytes), the payload
// of an unfinished control frame (up to 125 bytes) and the payload of an unfinished message, which has a
// limit. A compressed message is decompressed as it arrives, and stored decompressed.

/// Parses the bytes of frames into messages and control frames.
struct WebSocketReader: ~Copyable, Sendable {
    enum Output {
        case needMoreData
        case message(WebSocketMessage)
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose)
    }

    private enum Phase: Sendable {
        case header
        case payload(WebSocketFrameHeader, remaining: Int)
    }

    private let role: WebSocketRole
    /// The parameters that the other end follows when it compresses; nil if compression was not agreed on.
    private let compression: WebSocketCompression.Sender?
    private var phase = Phase.header
    private var unfinishedHeader: [UInt8] = []
    private var control: [UInt8] = []
    private var message: IncomingMessage?
    /// Made for the first compressed message.
    private var inflater: MessageInflater?
    /// Whether messages are skipped, so that nothing of them is stored.
    private var skipsMessages = false
    /// Whether a skipped message has begun.
    private var isInsideSkipped = false

    /// The number of bytes that are decompressed at a time.
    private static let pieceSize = 16 * 1024

    init(_ role: WebSocketRole, compression: WebSocketCompression.Sender?) {
        self.role = role
        self.compression = compression
    }

    // MARK: State

    /// Whether a frame or message has begun and not ended.
    var isInsideMessage: Bool {
        if case .payload = phase { return true }
        return hasBegunMessage || !unfinishedHeader.isEmpty
    }

    private var hasBegunMessage: Bool { message != nil || isInsideSkipped }

    /// Skips messages from here on: only control frames matter.
    mutating func skipMessages() {
        isInsideSkipped = hasBegunMessage
        skipsMessages = true
        message = nil
        inflater = nil
    }

    // MARK: Reading

    /// Reads from `input` starting at `consumed`, and advances `consumed`. `.needMoreData` means that all of
    /// `input` was read.
    mutating func next(
        in input: UnsafeRawBufferPointer, consumed: inout Int, limit: Int
    ) throws(WebSocketError) -> Output {
        while true {
            switch phase {
            case .header:
                guard let header = try takeHeader(in: input, &consumed) else { return .needMoreData }
                try begin(header, limit: limit)
                if let whole = try takeWhole(header, in: input, &consumed) { return .message(whole) }
                phase = .payload(header, remaining: header.length)
            case .payload(let header, let remaining):
                let count = min(remaining, input.count - consumed)
                if count > 0 {
                    let piece = UnsafeRawBufferPointer(rebasing: input[consumed..<consumed + count])
                    consumed += count
                    phase = .payload(header, remaining: remaining - count)
                    try take(piece, of: header, at: header.length - remaining, limit: limit)
                }
                guard count == remaining else { return .needMoreData }
                phase = .header
                if let output = try end(header, limit: limit) { return output }
            }
        }
    }

    private mutating func takeHeader(
        in input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WebSocketError) -> WebSocketFrameHeader? {
        let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
        if unfinishedHeader.isEmpty {
            if let (header, size) = try readHeader(rest) {
                consumed += size
                return header
            }
            unfinishedHeader.append(contentsOf: rest)
            consumed = input.count
            return nil
        }
        let known = unfinishedHeader.count
        unfinishedHeader.append(contentsOf: rest.prefix(WebSocketFrameHeader.maximumSize - known))
        let found = try unfinishedHeader.withUnsafeBufferPointer { (bytes) throws(WebSocketError) in
            try readHeader(UnsafeRawBufferPointer(bytes))
        }
        guard let (header, size) = found else {
            consumed = input.count
            return nil
        }
        consumed += size - known
        unfinishedHeader.removeAll(keepingCapacity: true)
        return header
    }

    private func readHeader(
        _ bytes: UnsafeRawBufferPointer
    ) throws(WebSocketError) -> (WebSocketFrameHeader, Int)? {
        try WebSocketFrameHeader.read(bytes, by: role, mayBeCompressed: compression != nil)
    }

    // MARK: Frames

    /// Checks whether the frame may come now, and whether its payload may be stored.
    private mutating func begin(_ header: WebSocketFrameHeader, limit: Int) throws(WebSocketError) {
        switch header.opcode {
        case .close, .ping, .pong:
            control.removeAll(keepingCapacity: true)
            return
        case .continuation:
            if !hasBegunMessage { throw .peer(.unexpectedContinuation) }
        case .text, .binary:
            if hasBegunMessage { throw .peer(.interruptedMessage) }
            if skipsMessages { isInsideSkipped = true } else { message = IncomingMessage(header) }
        }
        guard let message, !message.isCompressed else { return }
        if header.length > limit - message.payload.count { throw .peer(.messageTooLong(limit: limit)) }
    }

    /// Reads a message of one frame that is completely in `input`, as most are: it is made directly from
    /// these bytes, without being assembled.
    private mutating func takeWhole(
        _ header: WebSocketFrameHeader, in input: UnsafeRawBufferPointer, _ consumed: inout Int
    ) throws(WebSocketError) -> WebSocketMessage? {
        guard header.isFinal, header.opcode == .text || header.opcode == .binary, !header.isCompressed,
            header.mask == nil, message != nil, header.length <= input.count - consumed
        else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: input[consumed..<consumed + header.length])
        consumed += header.length
        message = nil
        return try IncomingMessage.whole(header.opcode, payload)
    }

    private mutating func take(
        _ piece: UnsafeRawBufferPointer, of header: WebSocketFrameHeader, at position: Int, limit: Int
    ) throws(WebSocketError) {
        guard let mask = header.mask else { return try take(piece, of: header.opcode, limit: limit) }
        var unmasked = Array(piece)
        unmasked.withUnsafeMutableBytes { mask.apply(to: $0, at: position) }
        try unmasked.withUnsafeBufferPointer { (bytes) throws(WebSocketError) in
            try take(UnsafeRawBufferPointer(bytes), of: header.opcode, limit: limit)
        }
    }

    private mutating func take(
        _ piece: UnsafeRawBufferPointer, of opcode: WebSocketOpcode, limit: Int
    ) throws(WebSocketError) {
        if opcode.isControl {
            control.append(contentsOf: piece)
        } else if message?.isCompressed == true {
            try decompress(piece, isTail: false, limit: limit)
        } else {
            // `message` is nil if messages are skipped.
            try message?.append(piece, limit: limit)
        }
    }

    /// - Returns: Nil if the frame was not the last of its message.
    private mutating func end(_ header: WebSocketFrameHeader, limit: Int) throws(WebSocketError) -> Output? {
        switch header.opcode {
        case .ping: return .ping(control)
        case .pong: return .pong(control)
        case .close:
            return .close(
                try control.withUnsafeBufferPointer { (payload) throws(WebSocketError) in
                    try WebSocketClose(UnsafeRawBufferPointer(payload))
                })
        case .continuation, .text, .binary:
            guard header.isFinal else { return nil }
            isInsideSkipped = false
            if message?.isCompressed == true { try endCompressed(limit: limit) }
            guard let whole = message else { return nil }
            message = nil
            return .message(try whole.finish())
        }
    }

    // MARK: Compression

    private mutating func endCompressed(limit: Int) throws(WebSocketError) {
        try MessageInflater.tail.withUnsafeBufferPointer { (tail) throws(WebSocketError) in
            try decompress(UnsafeRawBufferPointer(tail), isTail: true, limit: limit)
        }
        guard inflater?.endMessage() == true else {
            throw .peer(.corruptCompression(detail: "it ends in the middle of a block"))
        }
    }

    /// Appends the output for `input` to the message, piece by piece, and at most one byte more than the
    /// message may have.
    private mutating func decompress(
        _ input: UnsafeRawBufferPointer, isTail: Bool, limit: Int
    ) throws(WebSocketError) {
        guard let compression else { preconditionFailure("bug in Rondo: no compression was agreed on") }
        if inflater == nil {
            inflater = try MessageInflater(
                windowBits: compression.windowBits, keepsContext: compression.keepsContext)
        }
        try withUnsafeTemporaryAllocation(byteCount: Self.pieceSize, alignment: 16) {
            (buffer) throws(WebSocketError) in
            var consumed = 0
            while true {
                let left = max(0, limit - (message?.payload.count ?? 0))
                let room = UnsafeMutableRawBufferPointer(
                    rebasing: buffer.prefix(min(left, buffer.count - 1) + 1))
                let rest = UnsafeRawBufferPointer(rebasing: input[consumed...])
                let step = inflater!.inflate(rest, isTail: isTail, into: room)
                consumed += step.consumed
                let output = UnsafeRawBufferPointer(rebasing: room.prefix(step.produced))
                try message?.append(output, limit: limit)
                if let fault = step.fault { throw .peer(.corruptCompression(detail: fault)) }
                if consumed == input.count, step.produced < room.count { return }
                // No known zlib does this; it would make this loop endless.
                if step.consumed == 0, step.produced == 0 {
                    throw .peer(.corruptCompression(detail: "the decoder does not go on"))
                }
            }
        }
    }
}

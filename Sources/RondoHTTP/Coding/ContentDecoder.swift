package import Foundation

/// Decodes a body piece by piece, however many codings were applied to it.
///
/// `receive` only stores bytes, and `next` returns one event, so nothing is decoded before the receiver can
/// take it. The decoder stores the received bytes and a buffer for each coding. An error is a state that is
/// never left.
///
/// Bytes after the end of the encoded content are dropped, as in browsers. An empty body is empty content in
/// any coding, also as in browsers. Content that ends too early is an error, unlike in browsers: a program
/// would take it for complete.
package final class ContentDecoder {
    // A class, and not Sendable: it owns the libraries' states. It belongs to one load.

    package enum Event: Equatable {
        /// The next piece of the content, never empty, at most `pieceSize` bytes.
        case data(Data)
        case needMoreData
        /// The content is complete.
        case end
    }

    /// A coding, with input that it has not read yet.
    private final class Stage {
        let decoder: any CodingDecoder
        /// The output of the stage before; nil in the first stage.
        let buffer: UnsafeMutableRawBufferPointer?
        var unread: Range<Int> = 0..<0
        var produced: Int64 = 0
        var hasEnded = false

        init(_ decoder: any CodingDecoder, isFirst: Bool) {
            self.decoder = decoder
            // Owned: freed in `deinit`; decoders use it only during a call.
            buffer = isFirst ? nil : .allocate(byteCount: ContentDecoder.pieceSize, alignment: 16)
        }

        deinit { buffer?.deallocate() }
    }

    /// The size of the largest piece that is returned.
    package static let pieceSize = 64 * 1024

    private let limits: ContentLimits
    /// The stages in the order of decoding: the coding applied last comes first.
    private let stages: [Stage]
    /// Owned: freed in `deinit`; pieces are copied out of it.
    private let output: UnsafeMutableRawBufferPointer
    private var received: [Data] = []
    /// The number of bytes of `received[0]` that have been read.
    private var position = 0
    private var receivedCount: Int64 = 0
    private var sawEnd = false
    private var failure: ContentDecodingError?

    /// - Parameter codings: The codings in the order in which they were applied, as in Content-Encoding.
    package init(_ codings: [ContentCoding], limits: ContentLimits = ContentLimits())
        throws(ContentDecodingError)
    {
        guard codings.count <= limits.maximumCodings else { throw .tooManyCodings(limits.maximumCodings) }
        var stages: [Stage] = []
        for coding in codings.reversed() {
            stages.append(Stage(try Self.decoder(for: coding), isFirst: stages.isEmpty))
        }
        precondition(!stages.isEmpty, "bug in Rondo: there is nothing to decode")
        self.stages = stages
        self.limits = limits
        output = .allocate(byteCount: Self.pieceSize, alignment: 16)
    }

    deinit { output.deallocate() }

    private static func decoder(for coding: ContentCoding) throws(ContentDecodingError) -> any CodingDecoder {
        switch coding {
        case .gzip: return try ZlibDecoder(.gzip)
        case .deflate: return try ZlibDecoder(.deflate)
        case .brotli: return try BrotliDecoder()
        case .zstd: return try ZstdDecoder()
        }
    }

    // MARK: Input

    /// Stores encoded bytes, which follow those received before.
    package func receive(_ bytes: Data) {
        precondition(!sawEnd, "bug in Rondo: bytes after the end")
        guard !bytes.isEmpty else { return }
        received.append(bytes)
        receivedCount += Int64(bytes.count)
    }

    /// Ends the input: no more bytes will be received.
    package func receiveEnd() { sawEnd = true }

    // MARK: Output

    package func next() throws(ContentDecodingError) -> Event {
        if let failure { throw failure }
        do {
            return try nextPiece()
        } catch {
            failure = error
            received = []
            throw error
        }
    }

    private func nextPiece() throws(ContentDecodingError) -> Event {
        var filled = 0
        while filled < output.count {
            let room = UnsafeMutableRawBufferPointer(rebasing: output[filled...])
            guard let count = try produce(stages.count - 1, into: room), count > 0 else { break }
            filled += count
        }
        if filled > 0 { return .data(Data(output[..<filled])) }
        return stages[stages.count - 1].hasEnded ? .end : .needMoreData
    }

    /// Decodes with a stage and all stages before it.
    ///
    /// - Returns: The number of bytes in `room`; 0 if more input is needed; nil at the end.
    private func produce(_ index: Int, into room: UnsafeMutableRawBufferPointer) throws(ContentDecodingError)
        -> Int?
    {
        let stage = stages[index]
        if stage.hasEnded { return nil }
        while true {
            // A decoder may hold back output of input that it has consumed.
            let count = try step(stage, isFirst: index == 0, into: room)
            if count > 0 { return count }
            if stage.buffer == nil ? !received.isEmpty : !stage.unread.isEmpty { continue }
            switch try refill(index) {
            case .more: continue
            case .later: return 0
            case .never:
                try stage.decoder.finish()
                stage.hasEnded = true
                return nil
            }
        }
    }

    private enum Refill { case more, later, never }

    private func refill(_ index: Int) throws(ContentDecodingError) -> Refill {
        guard index > 0, let buffer = stages[index].buffer else {
            return !received.isEmpty ? .more : sawEnd ? .never : .later
        }
        guard let count = try produce(index - 1, into: buffer) else { return .never }
        stages[index].unread = 0..<count
        return count > 0 ? .more : .later
    }

    /// Calls a stage's decoder once.
    private func step(_ stage: Stage, isFirst: Bool, into room: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> Int
    {
        let step: DecoderStep
        var hadInput = true
        if let buffer = stage.buffer {
            let input = UnsafeRawBufferPointer(rebasing: buffer[stage.unread])
            hadInput = !input.isEmpty
            step = try stage.decoder.decode(input, into: room)
            stage.unread = stage.unread.lowerBound + step.consumed..<stage.unread.upperBound
        } else if let first = received.first {
            let position = position
            // `Data` does not support typed throws.
            step = try first.withUnsafeBytes { bytes in
                let input = UnsafeRawBufferPointer(rebasing: bytes[position...])
                return Result { () throws(ContentDecodingError) in
                    try stage.decoder.decode(input, into: room)
                }
            }.get()
            self.position += step.consumed
            if self.position == first.count {
                received.removeFirst()
                self.position = 0
            }
        } else {
            hadInput = false
            step = try stage.decoder.decode(UnsafeRawBufferPointer(start: nil, count: 0), into: room)
        }
        // No known library does this; it would make this loop endless.
        if hadInput, step.consumed == 0, step.produced == 0 {
            throw .corrupt(stage.decoder.coding, detail: "the decoder does not go on")
        }
        stage.produced += Int64(step.produced)
        try check(stage)
        return step.produced
    }

    /// Every stage is checked: content that first grows and then shrinks to nothing costs time too.
    private func check(_ stage: Stage) throws(ContentDecodingError) {
        if stage.produced > limits.maximumSize { throw .exceededSize(limits.maximumSize) }
        let (allowed, overflow) = receivedCount.multipliedReportingOverflow(by: limits.maximumRatio)
        if stage.produced > limits.ratioThreshold, !overflow, stage.produced > allowed {
            throw .exceededRatio(limits.maximumRatio)
        }
    }
}

/// The result of one call of a decoder: the bytes consumed and produced.
struct DecoderStep {
    var consumed: Int
    var produced: Int
}

/// A decoder for one coding, based on its library.
protocol CodingDecoder: AnyObject {
    var coding: ContentCoding { get }

    /// Decodes some of `input` into `output`. `output` is never empty; `input` may be. A call that produces
    /// nothing has consumed some input, if there was any. After the end of the content, input is consumed and
    /// ignored.
    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> DecoderStep

    /// Called when there is no more input. Throws if the content is not complete.
    func finish() throws(ContentDecodingError)
}

/// The first bytes of content, or of the data after its end, which decide whether they begin (more) content
/// of the same kind or something to be ignored. They may arrive one at a time.
struct ContinuationProbe {
    enum Verdict { case undecided, more, other }

    private(set) var bytes: [UInt8] = []
    private let length: Int
    private let isMore: @Sendable ([UInt8]) -> Bool

    /// - Parameter isMore: Whether the first `length` bytes begin more content.
    init(length: Int, isMore: @escaping @Sendable ([UInt8]) -> Bool) {
        self.length = length
        self.isMore = isMore
    }

    /// Takes as many bytes as it still needs, and returns how many those were.
    mutating func take(_ input: UnsafeRawBufferPointer) -> Int {
        let count = min(length - bytes.count, input.count)
        bytes.append(contentsOf: input.prefix(count))
        return count
    }

    var verdict: Verdict {
        if bytes.count < length { return .undecided }
        return isMore(bytes) ? .more : .other
    }
}

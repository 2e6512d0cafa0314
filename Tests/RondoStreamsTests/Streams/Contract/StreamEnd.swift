import RondoCore
import RondoStreams
import Testing

/// One direction of a kind of stream. The rules that are the same for both directions are tested over all of these.
struct StreamEnd: Sendable, CustomTestStringConvertible {
    let kind: StreamKind
    let isInput: Bool

    static let all =
        StreamKind.inputs.map { StreamEnd(kind: $0, isInput: true) }
        + StreamKind.outputs.map { StreamEnd(kind: $0, isInput: false) }

    var testDescription: String { "\(kind) \(isInput ? "input" : "output")" }

    /// The event after which `use()` does not wait.
    var event: String { isInput ? "bytes" : "space" }

    /// A stream that gives the first `count` bytes of the pattern, or has room for as many, not opened, and what it
    /// needs to live. On the thread of a loop.
    func make(_ count: Int) throws -> (any EitherStream, keep: Any?) {
        if isInput {
            let (stream, keep) = try kind.makeInput(pattern(count))
            return (stream, keep)
        }
        let (stream, written) = try kind.makeOutput(count)
        return (stream, written)
    }

    /// Runs a test's body on a thread with a loop, with such a stream: scheduled in the default mode, opened, and with
    /// its events noted.
    func onStream(
        _ count: Int,
        _ body: @escaping @Sendable (RunLoop, any EitherStream, StreamNotes) throws -> Findings
    ) throws -> Findings {
        try onStreamThread { loop in
            let (stream, keep) = try make(count)
            defer { withExtendedLifetime(keep) {} }
            return try body(loop, stream, stream.begin(in: loop))
        }
    }
}

/// An input or an output.
protocol EitherStream: Foundation.Stream {
    func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode)
    func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode)
    var whyNotDelivering: DeliveryObstacle { get }

    /// Reads or writes one byte.
    func use()

    /// Reads to the end, 100 bytes at a time, or writes the first `count` bytes of the pattern.
    ///
    /// - Returns: False if other bytes came, or not all of them were taken.
    func transfersPattern(_ count: Int) -> Bool
}

extension EitherStream {
    /// Schedules the stream in the default mode of `loop` and opens it.
    ///
    /// - Returns: Its delegate, which the stream does not retain.
    func begin(in loop: RunLoop) -> StreamNotes {
        let notes = StreamNotes()
        delegate = notes
        schedule(in: loop, forMode: .default)
        self.open()
        return notes
    }
}

extension InputStream: EitherStream {
    func use() { _ = bytes(1) }

    func transfersPattern(_ count: Int) -> Bool { allBytes(100).1 == pattern(count) }
}

extension OutputStream: EitherStream {
    func use() { _ = writeAll([1]) }

    func transfersPattern(_ count: Int) -> Bool { writeAll(pattern(count)) }
}

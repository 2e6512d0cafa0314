import Rondo

/// Reads another stream no faster than at a rate, for `--limit-rate`. Until it may go on, it has no bytes
/// available.
final class PacedStream: Foundation.InputStream {
    private let stream: Foundation.InputStream
    private var pace: UploadPace
    /// In seconds.
    private let clock: () -> Double

    init(_ stream: Foundation.InputStream, bytesPerSecond: Int, clock: @escaping () -> Double) {
        self.stream = stream
        self.clock = clock
        pace = UploadPace(bytesPerSecond: bytesPerSecond, from: clock())
        super.init(data: Data())
    }

    override var streamStatus: Status { stream.streamStatus }
    override var streamError: (any Error)? { stream.streamError }
    override var hasBytesAvailable: Bool { pace.room(at: clock()) > 0 && stream.hasBytesAvailable }

    override func open() { stream.open() }
    override func close() { stream.close() }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        let now = clock()
        // Not nothing, which would be the end.
        let count = stream.read(buffer, maxLength: min(maxLength, max(1, pace.room(at: now))))
        if count > 0 { pace.sent(count, at: now) }
        return count
    }
}

/// The pace of an upload: how many bytes may be sent at an instant, so that an average rate is kept. A value.
struct UploadPace {
    /// The seconds by which the bytes may be ahead of the rate: more than the time between two looks at the
    /// stream, so that the rate is reached.
    static let lead = 0.125
    /// The seconds for which slowness is made up.
    static let memory = 1.0

    private let bytesPerSecond: Double
    /// The instant at which a sender of exactly this rate has sent the bytes so far.
    private var due: Double

    init(bytesPerSecond: Int, from now: Double) {
        self.bytesPerSecond = Double(max(bytesPerSecond, 1))
        due = now
    }

    func room(at now: Double) -> Int {
        Int(min((now + Self.lead - max(due, now - Self.memory)) * bytesPerSecond, 1e9))
    }

    mutating func sent(_ count: Int, at now: Double) {
        due = max(due, now - Self.memory) + Double(count) / bytesPerSecond
    }
}

internal import RondoCore

/// The connection behind a stream that is no file and no memory: a socket, or the other end of a bound pair.
///
/// It tells the stream's core what has become possible; the stream tells it what the client does.
protocol StreamBackend: AnyObject {
    func open(_ side: StreamState.Direction)
    func close(_ side: StreamState.Direction)
    /// The stream's core has this mode already.
    func schedule(in mode: ScheduledMode)
    /// The stream's core does not have this mode any more.
    func remove(from mode: ScheduledMode)
    /// Serves streams that are scheduled nowhere, when the client asks how far they are: does what can be done at once, and
    /// never waits.
    func advance()
    /// Host and port, as traces name a stream by them; nil where there is no peer, or it has no name.
    var peerName: String? { get }
    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject?
    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool

    /// Reads at least one byte, however long that takes; 0 at the end, -1 on failure.
    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int
    /// Gives bytes that are at hand in place, at most `limit`, which is 1 at least, as read; they stay until
    /// the next call for the input. Nil where there are none.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>?
    /// Whether `read` would not wait.
    var hasBytesAvailable: Bool { get }
    /// Writes at least one byte of the pieces, of which there is one at least and none is empty, however long
    /// that takes; -1 on failure.
    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int
    func write(_ bytes: UnsafeRawBufferPointer) -> Int
    /// Whether `write` would not wait.
    var hasSpaceAvailable: Bool { get }
}

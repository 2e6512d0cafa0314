internal import RondoCore

/// The connection behind a stream that is neither file nor memory: a socket, a pipe, or the other end of a
/// bound pair.
///
/// The backend tells the stream's core what has become possible; the stream tells the backend what the client
/// does.
protocol StreamBackend: AnyObject {
    func open(_ side: StreamState.Direction)
    func close(_ side: StreamState.Direction)
    /// Adds the backend's sources to a mode, which the stream's core has already.
    func schedule(in mode: LoopMode)
    /// Removes the backend's sources from a mode, which the stream's core no longer has.
    func remove(from mode: LoopMode)
    /// Serves streams that are scheduled nowhere, when the client polls their state: does what can be done at
    /// once, and never waits.
    func advance()
    /// Host and port, for the stream's name in traces; nil if there is no peer, or it has no name.
    var peerName: String? { get }
    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject?
    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool

    /// Reads at least one byte, and waits for it if necessary; 0 at the end, -1 on failure.
    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int
    /// Lends available bytes, at most `limit` (1 or more), and counts them as read; they stay valid until the
    /// next call for the input. Nil if there are none.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>?
    /// Whether `read` would return without waiting.
    var hasBytesAvailable: Bool { get }
    /// Writes at least one byte of the pieces, and waits for space if necessary; -1 on failure. There must be
    /// at least one piece, and none may be empty.
    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int
    func write(_ bytes: UnsafeRawBufferPointer) -> Int
    /// Whether `write` would return without waiting.
    var hasSpaceAvailable: Bool { get }
}

public import RondoCore

extension Foundation.Stream {
    /// Makes the two streams of a TCP connection to a host; nothing is looked up or connected until one of
    /// them is opened (rule ST-37).
    ///
    /// The connection is secured if `.socketSecurityLevelKey` or `.tlsSettingsKey` was set on either before
    /// that.
    /// - Parameters:
    ///   - inputStream: Where the input stream is put; nil if it is not wanted.
    ///   - outputStream: The same of the output stream.
    public class func getStreamsToHost(
        withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let (input, output) = (StreamCore(.input), StreamCore(.output))
        let pair = SocketPair(host: hostname, port: port, input: input, output: output)
        inputStream?.pointee = InputStream(input, backend: pair)
        outputStream?.pointee = OutputStream(output, backend: pair)
    }

    /// Makes two streams of which one gives what is written to the other.
    ///
    /// - Parameter bufferSize: The most bytes that are written and not yet read (rule ST-34).
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let (input, output) = (StreamCore(.input), StreamCore(.output))
        let pair = BoundPair(size: bufferSize, input: input, output: output)
        inputStream?.pointee = InputStream(input, backend: pair)
        outputStream?.pointee = OutputStream(output, backend: pair)
    }

    /// For values typed `Stream`: what the overload of `schedule(in:forMode:)` in the module above calls. (In
    /// this module the overload itself would be in the way of the classes' own.)
    package func scheduleInRondo(_ aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        switch self {
        case let stream as InputStream: stream.schedule(in: aRunLoop, forMode: mode)
        case let stream as OutputStream: stream.schedule(in: aRunLoop, forMode: mode)
        default: preconditionFailure(notRondos)
        }
    }

    /// The same of `remove(from:forMode:)`.
    package func removeFromRondo(_ aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        switch self {
        case let stream as InputStream: stream.remove(from: aRunLoop, forMode: mode)
        case let stream as OutputStream: stream.remove(from: aRunLoop, forMode: mode)
        default: preconditionFailure(notRondos)
        }
    }

    private var notRondos: String {
        "\(type(of: self)) is Foundation's own, and delivers no events on Linux. Make an InputStream or OutputStream "
            + "of Rondo's: import Rondo instead of Foundation, or write Rondo.InputStream."
    }
}

public import RondoCore

extension Foundation.Stream {
    /// Makes the two streams of a TCP connection to a host; nothing is looked up or connected until one of
    /// them is opened (rule ST-37).
    ///
    /// The connection is secured if `.socketSecurityLevelKey` or `.tlsSettingsKey` is set on either stream,
    /// and uses a proxy if `.proxyKey` or `.socksProxyConfigurationKey` is.
    /// - Parameters:
    ///   - inputStream: Receives the input stream; nil if it is not wanted.
    ///   - outputStream: Receives the output stream; nil if it is not wanted.
    public class func getStreamsToHost(
        withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        getStreams(.host(hostname, port: port), inputStream, outputStream)
    }

    /// Makes the two streams of a connection to a Unix-domain socket; nothing is connected until one of them
    /// is opened.
    ///
    /// - Parameter path: The path of the socket, at most 107 bytes. A path that begins with a NUL is a name
    ///   in Linux's abstract namespace. An impossible path fails when a stream is opened.
    public class func getStreamsToUnixSocket(
        atPath path: String, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        getStreams(.address(.unix(path: path)), inputStream, outputStream)
    }

    /// Makes the two streams of a connected socket, TCP or Unix.
    ///
    /// The descriptor is non-blocking while the streams are open. When both are closed the caller owns it
    /// again, unless `.shouldCloseNativeSocketKey` makes them close it (rule ST-40).
    public class func getStreams(
        onSocket descriptor: Int32, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        getStreams(.descriptor(descriptor), inputStream, outputStream)
    }

    private class func getStreams(
        _ target: SocketTarget, _ inputStream: UnsafeMutablePointer<InputStream?>?,
        _ outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let pair = SocketPair(target)
        inputStream?.pointee = InputStream(pair)
        outputStream?.pointee = OutputStream(pair)
    }

    /// Makes the two streams, unopened, of an open connection.
    ///
    /// - Parameters:
    ///   - channel: Belongs to the streams from here on; it must be scheduled nowhere and have no handler.
    ///   - received: Bytes of the connection that were read already; the input stream returns them first.
    package class func makeStreams(
        over channel: SocketChannel, received: [UInt8]
    ) -> (input: InputStream, output: OutputStream) {
        let pair = SocketPair(.channel(channel), early: received)
        return (InputStream(pair), OutputStream(pair))
    }

    /// Makes two streams: the bytes written to the output stream are read from the input stream.
    ///
    /// - Parameter bufferSize: The most bytes that may be written and not yet read (rule ST-34), from 1 byte
    ///   to 1 GiB; a number beyond counts as the nearest of these.
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let (input, output) = (StreamCore(.input), StreamCore(.output))
        let pair = BoundPair(size: bufferSize, input: input, output: output)
        inputStream?.pointee = InputStream(input, pair)
        outputStream?.pointee = OutputStream(output, pair)
    }

    /// Schedules values of type `Stream`; the overload of `schedule(in:forMode:)` in the module above calls
    /// it. (In this module that overload would conflict with the methods of the two classes.)
    package func scheduleInRondo(_ aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        switch self {
        case let stream as InputStream: stream.schedule(in: aRunLoop, forMode: mode)
        case let stream as OutputStream: stream.schedule(in: aRunLoop, forMode: mode)
        default: preconditionFailure(notRondos)
        }
    }

    /// Does the same for `remove(from:forMode:)`.
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

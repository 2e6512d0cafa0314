public import RondoCore

extension Foundation.Stream {
    /// Makes the two streams of a TCP connection to a host; nothing is looked up or connected until one of
    /// them is opened (rule ST-37).
    ///
    /// The connection is secured if `.socketSecurityLevelKey` or `.tlsSettingsKey` was set on either, and
    /// goes by a proxy if `.proxyKey` or `.socksProxyConfigurationKey` was.
    /// - Parameters:
    ///   - inputStream: Where the input stream is put; nil if it is not wanted.
    ///   - outputStream: The same of the output stream.
    public class func getStreamsToHost(
        withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        getStreams(.host(hostname, port: port), inputStream, outputStream)
    }

    /// Makes the two streams of a connection to a Unix-domain socket; nothing is connected until one of them
    /// is opened.
    ///
    /// - Parameter path: Where the socket stands in the file system, at most 107 bytes; a path that begins
    ///   with a NUL is a name in Linux's abstract space. A path that cannot be is an error of the opening.
    public class func getStreamsToUnixSocket(
        atPath path: String, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        getStreams(.address(.unix(path: path)), inputStream, outputStream)
    }

    /// Makes the two streams of a socket that is connected already, TCP or Unix.
    ///
    /// The descriptor is set non-blocking while the streams are open, and is the caller's again when both are
    /// closed, unless `.shouldCloseNativeSocketKey` says that it is to be closed with them (rule ST-40).
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

    /// Makes the two streams, unopened, of a connection that is open already.
    ///
    /// - Parameters:
    ///   - channel: Theirs from here on; scheduled nowhere, and without a handler.
    ///   - received: What was read of it already: it is what the input stream gives first.
    package class func makeStreams(
        over channel: SocketChannel, received: [UInt8]
    ) -> (input: InputStream, output: OutputStream) {
        let pair = SocketPair(.channel(channel), early: received)
        return (InputStream(pair), OutputStream(pair))
    }

    /// Makes two streams of which one gives the bytes that are written to the other.
    ///
    /// - Parameter bufferSize: The most bytes that are written and not yet read (rule ST-34).
    public class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let (input, output) = (StreamCore(.input), StreamCore(.output))
        let pair = BoundPair(size: bufferSize, input: input, output: output)
        inputStream?.pointee = InputStream(input, pair)
        outputStream?.pointee = OutputStream(output, pair)
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

/// The two streams of a connection in one value.
///
/// The two streams of a connection share its channel, so Swift 6 lets neither variable be sent to a task
/// while the other is in use. A pair is sent as a whole: `AsyncStreamPair(StreamPair(toHost: "example.org",
/// port: 7), in: loop)`.
/// - Note: Not Sendable. Like its streams it is used on one thread, or handed over and not used again.
public struct StreamPair {
    public let input: InputStream
    public let output: OutputStream

    /// Makes a pair of two streams of one connection or bound pair, for example those of
    /// `Stream.getStreamsToHost`.
    public init(input: InputStream, output: OutputStream) {
        self.input = input
        self.output = output
    }

    /// Makes the streams of a TCP connection; nothing is looked up or connected until one of them is opened
    /// (rule ST-37).
    ///
    /// - Parameter tls: The TLS settings from the start; nil: plain text.
    public init(toHost host: String, port: Int, tls: TLSSettings? = nil) {
        self.init(SocketPair(.host(host, port: port)))
        if let tls { _ = input.setProperty(tls as AnyObject, forKey: .tlsSettingsKey) }
    }

    /// Makes the streams of a connection to a Unix-domain socket; nothing is connected until one of them is
    /// opened.
    ///
    /// - Parameter path: At most 107 bytes. A path that begins with a NUL is a name in Linux's abstract
    ///   namespace. An impossible path fails when a stream is opened.
    public init(toUnixSocket path: String) {
        self.init(SocketPair(.address(.unix(path: path))))
    }

    private init(_ pair: SocketPair) {
        self.init(input: InputStream(pair), output: OutputStream(pair))
    }
}

@available(*, unavailable)
extension StreamPair: Sendable {}

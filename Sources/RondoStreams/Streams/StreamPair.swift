/// The two streams of a connection in one value.
///
/// Two variables with the streams of one connection share the channel between them, so that Swift 6 lets neither go to a
/// task while the other is there. A pair goes as a whole: `AsyncStreamPair(StreamPair(toHost: "example.org", port: 7), in:
/// loop)`.
/// - Note: Not Sendable. Like its streams it is used on one thread, or handed over and not used again.
public struct StreamPair {
    public let input: InputStream
    public let output: OutputStream

    /// Two streams of one connection or bound pair, such as `Stream.getStreamsToHost` and its kin have made.
    public init(input: InputStream, output: OutputStream) {
        self.input = input
        self.output = output
    }

    /// The streams of a TCP connection; nothing is looked up or connected until one of them is opened (rule ST-37).
    ///
    /// - Parameter tls: How the connection is secured from the start; nil: not at all.
    public init(toHost host: String, port: Int, tls: TLSSettings? = nil) {
        self.init(SocketPair(.host(host, port: port)))
        if let tls { _ = input.setProperty(tls as AnyObject, forKey: .tlsSettingsKey) }
    }

    /// The streams of a connection to a Unix-domain socket; nothing is connected until one of them is opened.
    ///
    /// - Parameter path: At most 107 bytes; one that begins with a NUL is a name in Linux's abstract space. A path that
    ///   cannot be is an error of the opening.
    public init(toUnixSocket path: String) {
        self.init(SocketPair(.address(.unix(path: path))))
    }

    private init(_ pair: SocketPair) {
        self.init(input: InputStream(pair), output: OutputStream(pair))
    }
}

@available(*, unavailable)
extension StreamPair: Sendable {}

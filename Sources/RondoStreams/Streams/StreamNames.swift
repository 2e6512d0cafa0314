public import RondoCore

extension Foundation.Stream.PropertyKey {
    /// Whether a file output stream appends to an existing file, a Bool as NSNumber; settable until the
    /// stream is opened. Apple's `kCFStreamPropertyAppendToFile`.
    public static let appendToFileKey = Self(rawValue: "kCFStreamPropertyAppendToFile")

    /// The host of a socket stream, an NSString. Apple's `kCFStreamPropertySocketRemoteHostName`.
    public static let socketRemoteHostNameKey = Self(rawValue: "kCFStreamPropertySocketRemoteHostName")

    /// The port of a socket stream, an NSNumber. Apple's `kCFStreamPropertySocketRemotePortNumber`.
    public static let socketRemotePortNumberKey = Self(rawValue: "kCFStreamPropertySocketRemotePortNumber")

    /// The descriptor of an open socket stream: the bytes of an Int32 in an NSData. The stream still owns it.
    /// Apple's `kCFStreamPropertySocketNativeHandle`; read only.
    public static let socketNativeHandleKey = Self(rawValue: "kCFStreamPropertySocketNativeHandle")

    /// Whether closing the streams closes their socket, a Bool as NSNumber: by default false for a socket
    /// that the program has passed in, true for all others (rule ST-40). Apple's
    /// `kCFStreamPropertyShouldCloseNativeSocket`.
    ///
    /// A program that takes the socket over from open streams sets it to false, calls the input stream's
    /// `getBuffer` until that returns false, and closes the streams: bytes that the stream has read ahead are
    /// no longer in the socket. If it is false before the streams are opened, unread bytes stay there.
    public static let shouldCloseNativeSocketKey = Self(
        rawValue: "kCFStreamPropertyShouldCloseNativeSocket")

    /// The options of the socket, a `SocketOptions`; settable at any time, except for the connect timeout.
    public static let socketOptionsKey = Self(rawValue: "RondoStreamPropertySocketOptions")

    /// The proxy on the way to the host, a `StreamProxy`; settable until the first stream of the pair is
    /// opened. Sets the same as `.socksProxyConfigurationKey`, whose value is a dictionary, for SOCKS alone.
    public static let proxyKey = Self(rawValue: "RondoStreamPropertyProxy")

    /// The head of the response with which an HTTP proxy has refused the connection, in an NSData. Read only.
    public static let proxyResponseKey = Self(rawValue: "kCFStreamPropertyCONNECTResponse")

    /// The TLS settings of a socket stream (`TLSSettings`). Set before the streams are opened, they secure
    /// the connection from the start; set later, from that point on (STARTTLS, rule ST-42). A secured
    /// connection stays secured; one whose output stream was closed cannot be secured any more.
    public static let tlsSettingsKey = Self(rawValue: "RondoStreamPropertyTLSSettings")

    /// The results of a socket stream's TLS handshake, a `TLSInformation`; nil before the handshake is done.
    /// Read only.
    public static let tlsInformationKey = Self(rawValue: "RondoStreamPropertyTLSInformation")

    /// The same settings as `tlsSettingsKey`, as a dictionary of Core Foundation's keys (rule ST-43): Apple's
    /// `kCFStreamPropertySSLSettings`.
    public static let sslSettingsKey = Self(rawValue: "kCFStreamPropertySSLSettings")
}

extension RunLoop {
    /// Rondo's loop of the thread that `loop`, a Foundation loop, belongs to.
    ///
    /// Traps for the loop of another thread, because Foundation cannot tell whose it is.
    static func counterpart(of loop: Foundation.RunLoop) -> RunLoop {
        if loop === Foundation.RunLoop.current { return currentLoop() }
        precondition(
            loop === Foundation.RunLoop.main,
            "A stream was scheduled in, or removed from, the Foundation.RunLoop of another thread. Rondo's streams "
                + "live on Rondo.RunLoop: import Rondo instead of Foundation, or write Rondo.RunLoop.")
        return main
    }
}

extension NSError {
    /// The error for a Foundation stream that is in the state of error but has none.
    static var unexplained: NSError { NSError(domain: NSPOSIXErrorDomain, code: Int(EIO)) }

    /// The error for opening `path` as a file stream if it is a FIFO; otherwise nil.
    static func ofFIFO(_ path: String) -> NSError? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return nil }
        return .posix(
            EINVAL, "\(path) is a FIFO: a file stream would keep its loop waiting for the other end")
    }

    static func posix(_ code: Int32, _ description: String? = nil) -> NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(code),
            userInfo: [NSLocalizedDescriptionKey: description ?? SocketError.sentence(of: code)])
    }
}

public import FoundationNetworking
public import RondoCore

// Loads for tasks, which have no run loop of their own: `RunLoop.loader` drives them.

extension URLConnection {
    /// Loads `request` and returns its whole body; a body of more than `maximumCollectedBytes` fails.
    ///
    /// Redirects are followed. A response with an error status is returned like any other. Cancelling the
    /// task cancels the load.
    /// - Parameter configuration: Certificate authorities, pins, proxy, cookies, cache and the rest; nil for
    ///   the defaults.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func data(
        for request: URLRequest, configuration: Configuration? = nil
    ) async throws -> (Data, URLResponse) {
        try await AsyncLoad(configuration).value(of: request)
    }

    /// Loads a URL; see `data(for:configuration:)`.
    public static func data(
        from url: URL, configuration: Configuration? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), configuration: configuration)
    }

    /// Sends `request` with `body` in place of its own body, and returns the response's body.
    ///
    /// The method is that of the request: GET unless it was set.
    /// - Parameters:
    ///   - configuration: See `data(for:configuration:)`.
    ///   - progress: Called on the loader's thread after each piece that was sent. If the body has to be sent
    ///     again, the count begins again at its first piece.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func upload(
        for request: URLRequest, from body: Data, configuration: Configuration? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> (Data, URLResponse) {
        var upload = request
        upload.httpBody = body
        return try await AsyncLoad(configuration, progress: progress).value(of: upload)
    }

    /// Loads `request` into the file at `destination`, in constant memory. An existing file is replaced.
    ///
    /// A status of 400 or more is an error (`.badServerResponse`), and then nothing is written. If the
    /// download fails or its task is cancelled, the partial file is removed. To continue a download that was
    /// interrupted use `URLDownload`.
    /// - Parameters:
    ///   - configuration: See `data(for:configuration:)`.
    ///   - progress: Called on the loader's thread after each piece that was written.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    @discardableResult
    public static func download(
        for request: URLRequest, to destination: URL, configuration: Configuration? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> URLResponse {
        try await AsyncDownload(destination, progress).response(to: request, configuration)
    }

    /// Loads a URL into a file; see `download(for:to:configuration:progress:)`.
    @discardableResult
    public static func download(
        from url: URL, to destination: URL, configuration: Configuration? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> URLResponse {
        try await download(
            for: URLRequest(url: url), to: destination, configuration: configuration, progress: progress)
    }

    /// Loads `request` and returns when the response has come. The body is read as it comes: byte by byte, in
    /// the pieces in which it comes (`chunks`), or line by line (`lines`).
    ///
    /// While bytes wait for the task, the server is held back. The load ends when the sequence and its
    /// iterators have been released, or when the iterating task is cancelled.
    /// - Parameter configuration: See `data(for:configuration:)`.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func bytes(
        for request: URLRequest, configuration: Configuration? = nil
    ) async throws -> (Bytes, URLResponse) {
        let source = ByteSource(url: request.url)
        let response = try await source.response(of: ByteLoad(request, configuration, for: source))
        return (Bytes(handle: ByteSource.Handle(source)), response)
    }

    /// Loads a URL; see `bytes(for:configuration:)`.
    public static func bytes(
        from url: URL, configuration: Configuration? = nil
    ) async throws -> (Bytes, URLResponse) {
        try await bytes(for: URLRequest(url: url), configuration: configuration)
    }

    /// How much of a body has been transferred.
    public struct TransferProgress: Sendable, Hashable {
        /// Bytes that were sent, or written to the file, so far.
        public let bytes: Int64
        /// Bytes in total; nil if that is not known.
        public let total: Int64?

        init(bytes: Int64, total: Int64) {
            self.bytes = bytes
            self.total = total >= 0 ? total : nil
        }
    }
}

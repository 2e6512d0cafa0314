public import FoundationNetworking
public import RondoCore

// For tasks, which have no thread and no run loop of their own: the load is driven by `RunLoop.loader`.

extension URLConnection {
    /// Loads `request` and returns its whole body; a longer one than `maximumCollectedBytes` fails.
    ///
    /// Redirects are followed, and an error status is a response. A task that is cancelled cancels the load.
    /// - Parameter configuration: Authorities, pins, proxy, cookies, cache and the rest; nil: as every connection has
    ///   them.
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

    /// Sends `body` with `request` in place of what that has for a body, and returns the response's body.
    ///
    /// The method is the request's: a URLRequest's is GET unless it was set.
    /// - Parameters:
    ///   - configuration: As of `data(for:configuration:)`.
    ///   - progress: Called on the loader's thread after each piece that was sent. A body that has to be sent again
    ///     begins at its first piece.
    /// - Throws: A `URLError`; `.cancelled` if the task was cancelled.
    public static func upload(
        for request: URLRequest, from body: Data, configuration: Configuration? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> (Data, URLResponse) {
        var upload = request
        upload.httpBody = body
        return try await AsyncLoad(configuration, progress: progress).value(of: upload)
    }

    /// Loads `request` into the file at `destination`, in constant memory; a file that is there is replaced.
    ///
    /// A status of 400 or more is an error (`.badServerResponse`), and nothing is written then. What was written of a
    /// download that fails, or whose task is cancelled, is removed. To go on with one that was broken off use
    /// `URLDownload`.
    /// - Parameters:
    ///   - configuration: As of `data(for:configuration:)`.
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

    /// Loads `request` and returns once the response is there; the body is read as it comes: byte by byte, by
    /// `chunks` in the pieces in which it comes, or by `lines`.
    ///
    /// Bytes that are not taken hold the server back. The load ends when the sequence and its iterators are
    /// let go, and when the task that iterates is cancelled.
    /// - Parameter configuration: As of `data(for:configuration:)`.
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

    /// How far a body is on its way.
    public struct TransferProgress: Sendable, Hashable {
        /// Bytes that were sent, or written to the file.
        public let bytes: Int64
        /// Bytes in all; nil where that is not known.
        public let total: Int64?

        init(bytes: Int64, total: Int64) {
            self.bytes = bytes
            self.total = total >= 0 ? total : nil
        }
    }
}

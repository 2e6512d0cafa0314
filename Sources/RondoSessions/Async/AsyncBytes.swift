public import RondoConnections
internal import RondoCore

extension URLSession {
    /// The bytes of a response's body, as they arrive. They can be iterated once, in one of the forms below.
    ///
    /// At most 256 KiB wait for the reader; then the server is held back. The load is cancelled when the
    /// Swift task that iterates is cancelled, and when the sequence and all its iterators have been released
    /// (rule US-84). The body is decoded, as in `data(for:delegate:)`. An iterator throws a `URLError` if the
    /// load fails.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = URLConnection.Bytes.Iterator
        public typealias Iterator = URLConnection.Bytes.Iterator

        let bytes: URLConnection.Bytes
        /// The task that loads the bytes.
        public let task: URLSessionDataTask

        /// An iterator over single bytes.
        public func makeAsyncIterator() -> URLConnection.Bytes.Iterator { bytes.makeAsyncIterator() }

        /// The same bytes in the pieces in which they arrive; no piece is empty.
        public var chunks: URLConnection.Chunks { bytes.chunks }

        /// The same bytes as lines of text, without their line ends; empty lines are left out (rule US-85).
        public var lines: URLConnection.Lines { bytes.lines }

        /// The same bytes as lines of text, without their line ends (rule US-85).
        ///
        /// - Parameter keepingEmpty: If true, lines end at LF, CR and CR LF only, and empty lines count, as
        ///   line-based protocols such as server-sent events need. If false, lines also end at U+000B,
        ///   U+000C, U+0085, U+2028 and U+2029, and empty lines are left out, as in Apple's `lines`.
        public func lines(keepingEmpty: Bool) -> URLConnection.Lines {
            bytes.lines(keepingEmpty: keepingEmpty)
        }

        /// The same bytes as characters; invalid UTF-8 becomes U+FFFD.
        public var characters: URLConnection.Characters { bytes.characters }

        /// The same bytes as Unicode scalars; invalid UTF-8 becomes U+FFFD.
        public var unicodeScalars: URLConnection.UnicodeScalars { bytes.unicodeScalars }
    }
}

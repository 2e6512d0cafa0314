public import RondoConnections
internal import RondoCore

extension URLSession {
    /// The bytes of a body, as they come. To be iterated once, by one of the ways.
    ///
    /// At most 256 KiB wait for the reader; then the server is held back. The load is cancelled when the task is cancelled that
    /// iterates, and when the sequence and all its iterators are let go (rule US-84).
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8
        public typealias AsyncIterator = URLConnection.Bytes.Iterator
        public typealias Iterator = URLConnection.Bytes.Iterator

        let bytes: URLConnection.Bytes
        /// The task that loads them.
        public let task: URLSessionDataTask

        public func makeAsyncIterator() -> URLConnection.Bytes.Iterator { bytes.makeAsyncIterator() }

        /// The same bytes in the pieces in which they come, none of them empty.
        public var chunks: URLConnection.Chunks { bytes.chunks }

        /// The same bytes as lines of text; empty ones are left out.
        public var lines: URLConnection.Lines { bytes.lines }

        /// The same bytes as lines of text.
        ///
        /// - Parameter keepingEmpty: True: lines end at LF, CR and CR LF only, and empty ones count, as protocols want that
        ///   are written in lines (server-sent events). False: they end at U+000B, U+000C, U+0085, U+2028 and U+2029 too,
        ///   and empty ones are left out, as in Apple's `lines` (rule US-85).
        public func lines(keepingEmpty: Bool) -> URLConnection.Lines {
            bytes.lines(keepingEmpty: keepingEmpty)
        }

        /// The same bytes as characters.
        public var characters: URLConnection.Characters { bytes.characters }

        /// The same bytes as Unicode scalars.
        public var unicodeScalars: URLConnection.UnicodeScalars { bytes.unicodeScalars }
    }
}

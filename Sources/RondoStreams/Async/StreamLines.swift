internal import RondoCore

extension StreamChunks {
    /// The lines of the stream, in UTF-8, without empty ones. See `lines(keepingEmpty:)`.
    public var lines: Lines { lines(keepingEmpty: false) }

    /// The lines of the stream, in UTF-8, as they arrive.
    ///
    /// Without empty lines, lines end at LF, CR, CR LF, U+000B, U+000C, U+0085, U+2028 and U+2029; with them,
    /// at LF, CR and CR LF only, like those of most protocols. (The same as for a response's bytes, rule
    /// US-85.)
    public func lines(keepingEmpty keepsEmpty: Bool) -> Lines { Lines(chunks: self, keepsEmpty: keepsEmpty) }

    /// The lines of a stream. To be iterated once only: an iterator keeps the bytes that have arrived behind
    /// its last line.
    ///
    /// Line ends are not part of a line. Text behind the last line end is a line too. Bytes that are not
    /// UTF-8 become U+FFFD.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String
        public typealias Failure = any Error

        /// The most bytes of a line, the same as for a response; a longer line fails with `EMSGSIZE`.
        public static let maximumLength = 1 << 24

        let chunks: StreamChunks
        let keepsEmpty: Bool

        public func makeAsyncIterator() -> Iterator {
            Iterator(
                chunks: chunks.makeAsyncIterator(),
                splitter: LineSplitter(keepsEmpty: keepsEmpty, maximumLength: Self.maximumLength))
        }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var chunks: StreamChunks.Iterator
            fileprivate var splitter: LineSplitter
            fileprivate var state = State.open

            fileprivate enum State {
                case open
                case ended
                case tooLong
            }

            /// The next line; nil at the end.
            ///
            /// - Throws: The errors of `StreamChunks.Iterator.next()`; an error `EMSGSIZE` in
            ///   `NSPOSIXErrorDomain` for a line that is too long, and on each call after it.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> String? {
                while state == .open {
                    switch splitter.next() {
                    case .line(let line): return line
                    case .tooLong: state = .tooLong
                    case .nothing:
                        guard let chunk = try await chunks.next(isolation: actor) else {
                            state = .ended
                            return splitter.takeRest()
                        }
                        splitter.add(chunk)
                    }
                }
                guard state == .ended else {
                    throw NSError.posix(EMSGSIZE, "a line has more than \(Lines.maximumLength) bytes")
                }
                return nil
            }
        }
    }
}

public import RondoCore

extension URLConnection {
    /// The bytes of a body, as they come. Iterate it once, in one of its forms.
    public struct Bytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        let handle: ByteSource.Handle

        package init(handle: ByteSource.Handle) { self.handle = handle }

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        /// The same bytes in the pieces in which they come, none of them empty.
        public var chunks: Chunks { Chunks(handle: handle) }

        /// The same bytes as lines of text; empty ones are left out.
        public var lines: Lines { lines(keepingEmpty: false) }

        /// The same bytes as lines of text.
        ///
        /// - Parameter keepingEmpty: If true, lines end at LF, CR and CR LF only, and empty ones are kept, as
        ///   line-based protocols need it (server-sent events). If false, lines end at U+000B, U+000C,
        ///   U+0085, U+2028 and U+2029 too, and empty ones are left out, as in Apple's `lines` (rule US-85).
        public func lines(keepingEmpty: Bool) -> Lines { Lines(handle: handle, keepsEmpty: keepingEmpty) }

        /// The same bytes as characters.
        public var characters: Characters { Characters(handle: handle) }

        /// The same bytes as Unicode scalars.
        public var unicodeScalars: UnicodeScalars { UnicodeScalars(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle
            private var piece = Data()
            private var position = 0

            init(handle: ByteSource.Handle) { self.handle = handle }

            /// On the actor of the caller, which it leaves only to wait for the next piece.
            ///
            /// - Throws: A `URLError` if the load fails; `.cancelled` if the task was cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if position == piece.endIndex {
                    guard let next = try await handle.source.next() else { return nil }
                    piece = next
                    position = piece.startIndex
                }
                defer { position += 1 }
                return piece[position]
            }
        }
    }

    /// The pieces of a body, as they come. Iterate it once.
    public struct Chunks: AsyncSequence, Sendable {
        public typealias Element = Data

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle

            /// - Throws: A `URLError` if the load fails; `.cancelled` if the task was cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Data? {
                try await handle.source.next()
            }
        }
    }
}

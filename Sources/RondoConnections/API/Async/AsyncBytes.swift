public import RondoCore

extension URLConnection {
    /// The bytes of a body, as they come. To be iterated once, by one of the three ways.
    public struct Bytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        /// The same bytes in the pieces in which they come, none of them empty.
        public var chunks: Chunks { Chunks(handle: handle) }

        /// The same bytes as lines of text.
        public var lines: Lines { Lines(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle
            private var piece = Data()
            private var position = 0

            init(handle: ByteSource.Handle) { self.handle = handle }

            /// - Throws: A `URLError` where the load fails; `.cancelled` if the task was cancelled.
            public mutating func next() async throws -> UInt8? {
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

    /// The pieces of a body, as they come. To be iterated once.
    public struct Chunks: AsyncSequence, Sendable {
        public typealias Element = Data

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle

            /// - Throws: A `URLError` where the load fails; `.cancelled` if the task was cancelled.
            public mutating func next() async throws -> Data? { try await handle.source.next() }
        }
    }

    /// The lines of a body, as they come. To be iterated once.
    ///
    /// A line ends with a line feed, or with a carriage return and a line feed, which are not part of it. Empty lines
    /// are lines; so is what follows the last line feed, unless it is nothing. What is no UTF-8 becomes U+FFFD.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String

        /// The most bytes of a line; a longer one fails with `dataLengthExceedsMaximum`.
        public static let maximumLength = 1 << 24

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle: handle) }

        public struct Iterator: AsyncIteratorProtocol {
            let handle: ByteSource.Handle
            /// What was received and belongs to no line that was given yet.
            private var rest = Data()
            /// How much of it is known to hold no line feed.
            private var searched = 0

            init(handle: ByteSource.Handle) { self.handle = handle }

            /// - Throws: A `URLError` where the load fails or a line is too long; `.cancelled` if the task was cancelled.
            public mutating func next() async throws -> String? {
                while true {
                    if let end = rest.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) {
                        let line = rest[..<end]
                        rest = rest[(end + 1)...]
                        searched = 0
                        return Self.text(line)
                    }
                    searched = rest.count
                    guard searched <= Lines.maximumLength else {
                        handle.source.cancel()
                        throw URLErrors.error(.tooLongLine(Lines.maximumLength), url: handle.source.url)
                    }
                    guard let piece = try await handle.source.next() else { break }
                    // A Data of its own: the storage of what was given already is let go.
                    rest = Data(rest) + piece
                }
                defer { rest = Data() }
                searched = 0
                return rest.isEmpty ? nil : Self.text(rest)
            }

            private static func text(_ line: Data) -> String {
                let isPair = line.last == UInt8(ascii: "\r")
                return String(decoding: isPair ? line.dropLast() : line, as: UTF8.self)
            }
        }
    }
}

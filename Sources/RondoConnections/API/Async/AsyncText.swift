internal import RondoCore
internal import RondoStreams

extension URLConnection {
    /// The lines of a body, as they come. Iterate it once; see `Bytes.lines(keepingEmpty:)`.
    ///
    /// Lines do not include their line ends. Text after the last line end is a line too. Bytes that are not
    /// UTF-8 become U+FFFD.
    public struct Lines: AsyncSequence, Sendable {
        public typealias Element = String

        /// The maximum length of a line in bytes; a longer one fails with `dataLengthExceedsMaximum`.
        public static let maximumLength = 1 << 24

        let handle: ByteSource.Handle
        let keepsEmpty: Bool

        public func makeAsyncIterator() -> Iterator { Iterator(handle, keepsEmpty: keepsEmpty) }

        public struct Iterator: AsyncIteratorProtocol {
            private let handle: ByteSource.Handle
            private var splitter: LineSplitter
            private var isOver = false

            init(_ handle: ByteSource.Handle, keepsEmpty: Bool) {
                self.handle = handle
                splitter = LineSplitter(keepsEmpty: keepsEmpty, maximumLength: Lines.maximumLength)
            }

            /// - Throws: A `URLError` if the load fails or a line is too long; `.cancelled` if the task was
            ///   cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> String? {
                while !isOver {
                    switch splitter.next() {
                    case .line(let line): return line
                    case .tooLong:
                        isOver = true
                        throw URLConnection.tooLong(handle)
                    case .nothing:
                        guard let piece = try await handle.source.next() else {
                            isOver = true
                            return splitter.takeRest()
                        }
                        splitter.add(piece)
                    }
                }
                return nil
            }
        }
    }

    /// The Unicode scalars of a body in UTF-8, as they come. Iterate it once. Bytes that are not UTF-8 become
    /// U+FFFD.
    public struct UnicodeScalars: AsyncSequence, Sendable {
        public typealias Element = Unicode.Scalar

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle) }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let handle: ByteSource.Handle
            private var decoder = ScalarDecoder()
            private var scalars = String.UnicodeScalarView().makeIterator()
            private var isOver = false

            init(_ handle: ByteSource.Handle) { self.handle = handle }

            /// - Throws: A `URLError` if the load fails; `.cancelled` if the task was cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Unicode.Scalar?
            {
                while true {
                    if let scalar = scalars.next() { return scalar }
                    if isOver { return nil }
                    if let piece = try await handle.source.next() {
                        scalars = decoder.decode(piece).makeIterator()
                    } else {
                        isOver = true
                        scalars = decoder.end().makeIterator()
                    }
                }
            }
        }
    }

    /// The characters of a body in UTF-8, as they come: each is returned when the next one has begun, or at
    /// the end. Iterate it once. Bytes that are not UTF-8 become U+FFFD.
    public struct Characters: AsyncSequence, Sendable {
        public typealias Element = Character

        /// The maximum length of a character in bytes; a longer one fails with `dataLengthExceedsMaximum`.
        public static let maximumLength = Lines.maximumLength

        let handle: ByteSource.Handle

        public func makeAsyncIterator() -> Iterator { Iterator(handle) }

        public struct Iterator: AsyncIteratorProtocol {
            private var scalars: UnicodeScalars.Iterator
            /// Keeps the state that decides where a character ends, so that a long one is not scanned again
            /// with each scalar.
            private var recognizer = Unicode._CharacterRecognizer()
            private var begun = ""

            init(_ handle: ByteSource.Handle) { scalars = UnicodeScalars.Iterator(handle) }

            /// - Throws: A `URLError` if the load fails or a character is too long; `.cancelled` if the task
            ///   was cancelled.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Character? {
                while let scalar = try await scalars.next(isolation: actor) {
                    let isNext = recognizer.hasBreak(before: scalar)
                    if isNext, let character = begun.first {
                        begun = String(scalar)
                        return character
                    }
                    begun.unicodeScalars.append(scalar)
                    guard begun.utf8.count <= Characters.maximumLength else {
                        begun = ""
                        throw URLConnection.tooLong(scalars.handle)
                    }
                }
                defer { begun = "" }
                return begun.first
            }
        }
    }

    /// Ends a load whose text has a line, or a character, that is too long, and returns the error.
    fileprivate static func tooLong(_ handle: ByteSource.Handle) -> any Error {
        handle.source.cancel()
        return URLErrors.error(.tooLongLine(Lines.maximumLength), url: handle.source.url)
    }
}

/// The reason why a connection cannot continue with HTTP/1.1.
package enum HTTP1Error: Error, Sendable, Equatable {
    /// The server broke the rules, or closed the connection. Nothing more can be read; the connection has to
    /// be closed.
    case peer(Peer)
    /// Our side was about to break the rules. Nothing was written, and nothing more can be sent.
    case local(Local)

    package enum Peer: Sendable, Equatable {
        // The connection ended too early.

        /// The connection was closed before any part of a response. A request that may be repeated can be
        /// sent again on a new connection: a kept connection is often closed at the moment it is used.
        case closedBeforeResponse
        /// The connection was closed after interim responses, before the final one.
        case closedBeforeFinalResponse
        /// The connection was closed in the middle of a status line or header section.
        case truncatedHead(received: Int)
        /// The connection was closed in the middle of a body. `expected` is nil if the body was chunked.
        case truncatedBody(expected: Int64?, received: Int64)

        // The head is malformed.

        /// The first bytes are not HTTP.
        case invalidStatusLine(excerpt: String)
        /// HTTP, but a version with another message format.
        case unsupportedVersion(major: UInt8, minor: UInt8)
        /// A line of a header section that is not a field: no colon, no name, whitespace before the colon, or
        /// leading whitespace without a preceding field that it could continue.
        case invalidFieldLine(excerpt: String)
        /// A NUL, which no value may contain. The value is not quoted, because it may be a secret.
        case invalidFieldValue(name: String, byte: UInt8)
        /// A line that ends in CR alone, or in LF alone where that is not tolerated.
        case invalidLineEnd(FieldSection)

        // The end of the body is uncertain, which is used for response smuggling.

        case invalidContentLength(String)
        case conflictingContentLengths(Int64, Int64)
        case contentLengthWithTransferEncoding
        case transferEncodingInHTTP10
        /// A transfer coding that the request did not offer.
        case unsupportedTransferCoding(String)
        case invalidChunk(ChunkFlaw)

        // The exchange is out of step.

        /// A 101 response to a request that offered no other protocol.
        case unexpectedSwitchingProtocols
        /// Bytes that answer no request.
        case unsolicitedBytes(excerpt: String)

        /// One of `HTTP1Limits` was exceeded.
        case exceeded(Limit)
    }

    package enum FieldSection: Sendable, Equatable { case header, trailer }

    package enum ChunkFlaw: Sendable, Equatable {
        /// The line before a chunk does not begin with a hexadecimal digit.
        case missingSize(byte: UInt8)
        /// The digits are followed by something other than padding, an extension or the line end.
        case invalidSize(byte: UInt8)
        /// The size exceeds 2⁶³ − 1.
        case sizeTooLarge
        /// A control character, a lone CR or a lone LF in an extension.
        case invalidExtension(byte: UInt8)
        /// The line before a chunk ends in CR or LF alone.
        case invalidLineEnd
        /// The chunk is longer than its size.
        case missingLineEndAfterData(byte: UInt8)
    }

    package enum Limit: Sendable, Equatable {
        case statusLineLength(Int)
        case headSize(Int)
        case fieldCount(Int)
        case informationalResponses(Int)
        case emptyLines(Int)
        case chunkLineLength(Int)
        case trailerSize(Int)
    }

    package enum Local: Sendable, Equatable {
        case invalidMethod(String)
        case invalidTarget(String)
        case missingHost
        case repeatedHost
        case invalidFieldName(String)
        /// CR, LF or NUL in a value. The value is not quoted, because it may be a secret.
        case invalidFieldValue(name: String)
        /// A length below zero.
        case invalidLength(Int64)
        /// `Content-Length` or `Transfer-Encoding` contradicts the requested framing.
        case framingMismatch(field: String)
        case bodyTooLong(declared: Int64, attempted: Int64)
        case bodyTooShort(declared: Int64, sent: Int64)
        /// Trailers can only follow a chunked body.
        case trailersWithoutChunks
        /// A field that decides framing or routing cannot come after the body (RFC 9110 §6.5.1).
        case forbiddenTrailer(String)
        /// Something was sent before or after its time.
        case outOfTurn(Move, during: Phase)
    }

    /// The parts of a request that the client sends.
    package enum Move: String, Sendable { case head, body, end }
    /// The progress of the request.
    package enum Phase: String, Sendable { case idle, body, complete }
}

extension HTTP1Error: CustomStringConvertible {
    /// A sentence for people.
    package var description: String {
        switch self {
        case .peer(let fault): fault.description
        case .local(let fault): fault.description
        }
    }
}

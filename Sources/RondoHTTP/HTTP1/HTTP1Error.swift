/// Why a connection cannot go on speaking HTTP/1.1.
package enum HTTP1Error: Error, Sendable, Equatable {
    /// The server broke the rules, or left. Nothing more can be read; the connection has to be closed.
    case peer(Peer)
    /// We were about to break the rules. Nothing was written, and nothing more can be sent.
    case local(Local)

    package enum Peer: Sendable, Equatable {
        // The connection ended too early.

        /// It was closed before any part of a response. A request that may be repeated can be sent again on a
        /// new connection: a kept connection is often closed at the moment it is used.
        case closedBeforeResponse
        /// It was closed after interim responses, before the final one.
        case closedBeforeFinalResponse
        /// It was closed in the middle of a status line or header section.
        case truncatedHead(received: Int)
        /// It was closed in the middle of a body. `expected` is nil if the body was chunked.
        case truncatedBody(expected: Int64?, received: Int64)

        // The head is malformed.

        /// Not HTTP, by its first bytes.
        case invalidStatusLine(excerpt: String)
        /// HTTP, but not a version whose messages look like this.
        case unsupportedVersion(major: UInt8, minor: UInt8)
        /// A line of a header section that is no field: no colon, no name, whitespace before the colon, or
        /// whitespace where no field came before it to be continued.
        case invalidFieldLine(excerpt: String)
        /// NUL, which no value may hold. The value is not quoted: it may be a secret.
        case invalidFieldValue(name: String, byte: UInt8)
        /// A line that ends in CR alone, or in LF alone where that is not tolerated.
        case invalidLineEnd(FieldSection)

        // The end of the body is not what it seems, which is how responses are smuggled past one another.

        case invalidContentLength(String)
        case conflictingContentLengths(Int64, Int64)
        case contentLengthWithTransferEncoding
        case transferEncodingInHTTP10
        /// A transfer coding that we never offered.
        case unsupportedTransferCoding(String)
        case invalidChunk(ChunkFlaw)

        // The conversation is out of step.

        /// 101 to a request that offered no other protocol.
        case unexpectedSwitchingProtocols
        /// Bytes that answer no request.
        case unsolicitedBytes(excerpt: String)

        /// One of `HTTP1Limits` was exceeded.
        case exceeded(Limit)
    }

    package enum FieldSection: Sendable, Equatable { case header, trailer }

    package enum ChunkFlaw: Sendable, Equatable {
        /// The line before a chunk begins with no hexadecimal digit.
        case missingSize(byte: UInt8)
        /// Something else than padding, an extension or the line end follows the digits.
        case invalidSize(byte: UInt8)
        /// The size exceeds 2⁶³ − 1.
        case sizeTooLarge
        /// A control character, a lone CR or a lone LF in an extension.
        case invalidExtension(byte: UInt8)
        /// The line before a chunk ends in CR or LF alone.
        case invalidLineEnd
        /// The chunk is longer than its size said.
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
        /// CR, LF or NUL in a value. The value is not quoted: it may be a secret.
        case invalidFieldValue(name: String)
        /// A length below zero.
        case invalidLength(Int64)
        /// `Content-Length` or `Transfer-Encoding` say something else than the framing that was asked for.
        case framingMismatch(field: String)
        case bodyTooLong(declared: Int64, attempted: Int64)
        case bodyTooShort(declared: Int64, sent: Int64)
        /// Trailers can only follow a chunked body.
        case trailersWithoutChunks
        /// A field that decides framing or routing cannot come after the body (RFC 9110 §6.5.1).
        case forbiddenTrailer(String)
        /// Something was said before or after its time.
        case outOfTurn(Move, during: Phase)
    }

    /// What we may say.
    package enum Move: String, Sendable { case head, body, end }
    /// Where the request is.
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

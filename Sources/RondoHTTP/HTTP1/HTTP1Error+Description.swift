// The sentences for people. They describe the fault in the response or request, and give no advice: only the
// layer above knows the purpose of the request and the host.

extension HTTP1Error.Peer: CustomStringConvertible {
    package var description: String {
        switch self {
        case .closedBeforeResponse:
            "The server closed the connection without an answer."
        case .closedBeforeFinalResponse:
            "The server closed the connection after an interim response, before the final one."
        case .truncatedHead(let received):
            "The server closed the connection in the middle of the response's head, after \(received) bytes."
        case .truncatedBody(let expected?, let received):
            "The server closed the connection after \(received) of the \(expected) bytes of the body."
        case .truncatedBody(nil, let received):
            "The server closed the connection after \(received) bytes of a body whose end had not come."
        case .invalidStatusLine(let excerpt):
            "The server does not answer in HTTP: its answer begins with “\(excerpt)”."
        case .unsupportedVersion(let major, let minor):
            "The server answers in HTTP/\(major).\(minor), which is not spoken here."
        case .invalidFieldLine(let excerpt):
            "The response has an invalid header line: “\(excerpt)”."
        case .invalidFieldValue(let name, let byte):
            "The response's header “\(name)” holds the control character \(hexadecimal(byte))."
        case .invalidLineEnd(.header):
            "A line of the response's header does not end in CR LF."
        case .invalidLineEnd(.trailer):
            "A line of the response's trailer does not end in CR LF."
        case .invalidContentLength(let value):
            "The response's Content-Length is not a length: “\(value)”."
        case .conflictingContentLengths(let first, let second):
            "The response names two lengths, \(first) and \(second)."
        case .contentLengthWithTransferEncoding:
            "The response has both Content-Length and Transfer-Encoding, so its end is uncertain."
        case .transferEncodingInHTTP10:
            "The response has Transfer-Encoding, which HTTP/1.0 does not know, so its end is uncertain."
        // Applied once, it is no error (RFC 9112 §6.1).
        case .unsupportedTransferCoding(let coding) where coding.lowercased() == "chunked":
            "The response applies the transfer coding “\(coding)” more than once."
        case .unsupportedTransferCoding(let coding):
            "The response uses the transfer coding “\(coding)”, which was not asked for."
        case .invalidChunk(let flaw):
            "The response's chunked body is malformed: \(flaw)."
        case .unexpectedSwitchingProtocols:
            "The server switched to another protocol, which was not asked for."
        case .unsolicitedBytes(let excerpt):
            "The server sent bytes that belong to no request: “\(excerpt)”."
        case .exceeded(let limit):
            "The response exceeds a limit: \(limit)."
        }
    }
}

extension HTTP1Error.ChunkFlaw: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missingSize(let byte): "a chunk begins with the byte \(hexadecimal(byte)) instead of its size"
        case .invalidSize(let byte): "the byte \(hexadecimal(byte)) is invalid in a chunk's size"
        case .sizeTooLarge: "the size of a chunk exceeds all bounds"
        case .invalidExtension(let byte): "the byte \(hexadecimal(byte)) is invalid in a chunk's extension"
        case .invalidLineEnd: "a chunk's size does not end in CR LF"
        case .missingLineEndAfterData(let byte):
            "the byte \(hexadecimal(byte)) follows a chunk instead of CR LF"
        }
    }
}

extension HTTP1Error.Limit: CustomStringConvertible {
    package var description: String {
        switch self {
        case .statusLineLength(let limit): "a status line of more than \(limit) bytes"
        case .headSize(let limit): "a head of more than \(limit) bytes"
        case .fieldCount(let limit): "more than \(limit) header fields"
        case .informationalResponses(let limit): "more than \(limit) interim responses"
        case .emptyLines(let limit): "more than \(limit) empty lines before the status line"
        case .chunkLineLength(let limit): "more than \(limit) bytes in the line before a chunk"
        case .trailerSize(let limit): "a trailer of more than \(limit) bytes"
        }
    }
}

extension HTTP1Error.Local: CustomStringConvertible {
    package var description: String {
        switch self {
        case .invalidMethod(let method):
            "“\(method)” cannot be sent as a request method."
        case .invalidTarget(let target):
            "“\(target)” cannot be sent as the target of a request: it is empty or needs percent-encoding."
        case .missingHost:
            "The request has no Host field."
        case .repeatedHost:
            "The request has more than one Host field."
        case .invalidFieldName(let name):
            "“\(name)” cannot be sent as the name of a header field."
        case .invalidFieldValue(let name):
            "The value of the header field “\(name)” cannot be sent: it holds a line break or NUL."
        case .invalidLength(let length):
            "\(length) cannot be the length of a request's body."
        case .framingMismatch(let field):
            "The request's \(field) field contradicts the way its body is sent."
        case .bodyTooLong(let declared, let attempted):
            "The request's body was declared to have \(declared) bytes, but has at least \(attempted)."
        case .bodyTooShort(let declared, let sent):
            "The request's body was declared to have \(declared) bytes, but ended after \(sent)."
        case .trailersWithoutChunks:
            "Trailer fields can only follow a chunked body."
        case .forbiddenTrailer(let name):
            "“\(name)” cannot be sent as a trailer field."
        case .outOfTurn(let move, let phase):
            "The request's \(move.rawValue) cannot be sent now (\(phase.rawValue))."
        }
    }
}

private func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return digits.count < 2 ? "0x0\(digits)" : "0x\(digits)"
}

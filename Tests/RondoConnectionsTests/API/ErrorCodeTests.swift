import Rondo
import RondoHTTP
import RondoStreams
import Testing

@testable import RondoConnections

/// Tests which code belongs to which fault of a peer's: all of them, by a table.
@Suite struct ErrorCodeTests {
    private static func code(_ failure: LoadFailure) -> URLError.Code {
        URLErrors.error(failure, url: URL(string: "http://host.example/")).code
    }

    /// The bytes are no message, or more of one than is read.
    @Test(
        arguments: [
            .invalidStatusLine(excerpt: "220 mail"), .unsupportedVersion(major: 2, minor: 0),
            .invalidFieldLine(excerpt: "A : b"), .invalidFieldValue(name: "A", byte: 0),
            .invalidLineEnd(.header),
            .invalidLineEnd(.trailer), .invalidContentLength("-1"), .invalidChunk(.missingSize(byte: 0)),
            .invalidChunk(.invalidSize(byte: 0)), .invalidChunk(.sizeTooLarge),
            .invalidChunk(.invalidExtension(byte: 0)),
            .invalidChunk(.invalidLineEnd), .invalidChunk(.missingLineEndAfterData(byte: 0)),
            .unsolicitedBytes(excerpt: "x"), .exceeded(.statusLineLength(1)), .exceeded(.headSize(1)),
            .exceeded(.fieldCount(1)), .exceeded(.emptyLines(1)), .exceeded(.chunkLineLength(1)),
            .exceeded(.trailerSize(1)),
        ] as [HTTP1Error.Peer])
    func `UC-59 a response that cannot be parsed fails with -1017`(fault: HTTP1Error.Peer) {
        #expect(Self.code(.http(HTTPFailure(.peer(fault)))) == .cannotParseResponse)
    }

    /// Each field can be read, and what they say together cannot be.
    @Test(
        arguments: [
            .conflictingContentLengths(1, 2), .contentLengthWithTransferEncoding, .transferEncodingInHTTP10,
            .unsupportedTransferCoding("gzip"), .unexpectedSwitchingProtocols,
            .exceeded(.informationalResponses(1)),
        ] as [HTTP1Error.Peer])
    func `UC-59 a response that is well formed and makes no sense fails with -1011`(fault: HTTP1Error.Peer) {
        #expect(Self.code(.http(HTTPFailure(.peer(fault)))) == .badServerResponse)
    }

    @Test(
        arguments: [
            .closedBeforeResponse, .closedBeforeFinalResponse, .truncatedHead(received: 1),
            .truncatedBody(expected: 2, received: 1), .truncatedBody(expected: nil, received: 1),
        ] as [HTTP1Error.Peer])
    func `UC-59 a response that breaks off fails with -1005`(fault: HTTP1Error.Peer) {
        #expect(Self.code(.http(HTTPFailure(.peer(fault)))) == .networkConnectionLost)
    }

    @Test func `UC-59 a part's head that cannot be parsed fails with -1017`() {
        #expect(Self.code(.multipart(.headTooLarge(1))) == .cannotParseResponse)
        let fault = HTTP1Error.peer(.invalidFieldLine(excerpt: "A : b"))
        #expect(Self.code(.multipart(.invalidHead(fault))) == .cannotParseResponse)
    }

    /// Unless the proxy says yes, there is no connection to the host.
    @Test(arguments: [.refused, .authentication, .protocolViolation, .closed] as [NegotiationError.Kind])
    func `UC-59 a proxy that makes no tunnel fails the load with -1004`(kind: NegotiationError.Kind) {
        let error = NegotiationError(kind, description: "it does not")
        #expect(Self.code(.channel(.negotiation(error))) == .cannotConnectToHost)
    }

    @Test func `UC-59 a request that cannot be sent is a bad URL`() {
        #expect(Self.code(.http(HTTPFailure(.local(.missingHost)))) == .badURL)
        #expect(Self.code(.impossiblePort) == .badURL)
        #expect(Self.code(.invalidDataURL) == .badURL)
    }
}

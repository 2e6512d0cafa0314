import Rondo
import RondoTestSupport
import Testing

/// As programs write it to be tested without a network.
private protocol Transport: Sendable {
    func data(for request: URLRequest) async throws -> (Data, URLResponse)
    func data(from url: URL) async throws -> (Data, URLResponse)
    func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse)
    func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse)
    func download(for request: URLRequest) async throws -> (URL, URLResponse)
    func download(from url: URL) async throws -> (URL, URLResponse)
    func bytes(from url: URL) async throws -> (URLSession.AsyncBytes, URLResponse)
    func dataTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask
}

extension URLSession: Transport {}

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct AsyncProtocolTests {
    @Test func `US-3 a session conforms to a program's own protocol with data(for:)`() async throws {
        let server = try TestServer.answering { request in "\(request.method) \(request.target)" }
        let url = server.url("/a")
        var request = URLRequest(url: url)
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let transport: any Transport = session
        #expect(try await Self.text(transport.data(for: request)) == "GET /a")
        #expect(try await Self.text(transport.data(from: url)) == "GET /a")
        var bytes = Data()
        for try await byte in try await transport.bytes(from: url).0 { bytes.append(byte) }
        #expect(String(decoding: bytes, as: UTF8.self) == "GET /a")
        for (file, _) in [
            try await transport.download(for: request), try await transport.download(from: url),
        ] {
            #expect(try Data(contentsOf: file) == Data("GET /a".utf8))
            try FileManager.default.removeItem(at: file)
        }
        request.httpMethod = "PUT"
        #expect(try await Self.text(transport.upload(for: request, from: Data([1]))) == "PUT /a")
    }

    private static func text(_ loaded: (Data, URLResponse)) -> String {
        String(decoding: loaded.0, as: UTF8.self)
    }
}

import Rondo
import Testing

@testable import RondoConnections

@Suite struct CollectedBodyTests {
    @Test func `US-44 a body may have as many bytes as the limit, and not one more`() {
        let url = URL(fileURLWithPath: "/")
        var body = CollectedBody(limit: 10)
        body.begin(URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil))
        #expect(body.add(Data("12345".utf8)) == nil)
        #expect(body.add(Data("67890".utf8)) == nil)
        #expect(body.data == Data("1234567890".utf8))
        #expect(body.add(Data("x".utf8)) == .collectedTooMuch(10))
        #expect(body.data.isEmpty)
        // Another response, whose announcement is right.
        body.begin(URLResponse(url: url, mimeType: nil, expectedContentLength: 10, textEncodingName: nil))
        #expect(body.add(Data("1234567890".utf8)) == nil)
        body.begin(URLResponse(url: url, mimeType: nil, expectedContentLength: 11, textEncodingName: nil))
        #expect(body.add(Data("x".utf8)) == .collectedTooMuch(10))
        #expect(URLConnection.maximumCollectedBytes == 1 << 30)
    }
}

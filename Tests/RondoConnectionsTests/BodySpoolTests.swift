import Foundation
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests what is kept of a body from a stream, in case it has to be sent again.
@Suite(.timeLimit(.minutes(5))) struct BodySpoolTests {
    @Test(arguments: ["", "/dev/null", "/dev/null/nowhere", nil] as [String?])
    func `UC-40 a TMPDIR in which no file can be made counts as none`(chosen: String?) {
        #expect(BodySpool.folder(chosen: chosen) == BodySpool.folder(chosen: nil))
        #expect(BodySpool.folder(chosen: "/tmp") == "/tmp")
    }

    /// In a process of its own: it has no descriptor left.
    @Test func `UC-40 a body of which a part could not be kept is not sent again from the middle`() async {
        await #expect(processExitsWith: .success) {
            let stream = Foundation.InputStream(data: Data(count: 2 * BodySpool.maximumInMemory))
            let body = BodyStream(stream, of: stream, keeps: true) {}
            body.open(in: [])
            var piece = [UInt8](repeating: 0, count: BodySpool.maximumInMemory)
            func read() -> Int {
                let reading = piece.withUnsafeMutableBytes { body.read(into: $0) }
                if case .bytes(let count) = reading { return count } else { return 0 }
            }
            precondition(body.rewind(), "nothing of it is read yet")
            precondition(read() == piece.count, "the first part is not read")
            precondition(body.rewind(), "the first part is in memory")
            precondition(read() == piece.count, "the first part is not read again")
            // What is more than memory takes goes to a file, for which there is no descriptor.
            withNoDescriptorLeft { precondition(read() == piece.count, "the second part is not read") }
            precondition(!body.rewind(), "the second part was not kept")
        }
    }
}

import Foundation
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests what is kept of a body from a stream, in case it has to be sent again.
@Suite(.timeLimit(.minutes(5))) struct BodySpoolTests {
    /// The folder of a file without a name that is made with this TMPDIR.
    private func folder(chosen: String?) throws -> String {
        let descriptor = try BodySpool.unnamedFile(chosen: chosen)
        defer { close(descriptor) }
        let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        return String(try #require(path.components(separatedBy: "/rondo-body-").first))
    }

    @Test(arguments: ["", "/dev/null", "/dev/null/nowhere", nil] as [String?])
    func `UC-40 a TMPDIR in which no file can be made counts as none`(chosen: String?) throws {
        let other = try folder(chosen: chosen)
        #expect(["/var/tmp", "/tmp"].contains(other))
        #expect(try folder(chosen: nil) == other)
    }

    @Test func `UC-40 a TMPDIR that is a file counts as none, though its user may write and execute it`()
        throws
    {
        let name = FileManager.default.temporaryDirectory.appendingPathComponent("rondo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: name) }
        try Data().write(to: name)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: name.path)
        #expect(try folder(chosen: name.path) == folder(chosen: nil))
        try FileManager.default.removeItem(at: name)
        try FileManager.default.createDirectory(at: name, withIntermediateDirectories: false)
        #expect(try folder(chosen: name.path) == name.resolvingSymlinksInPath().path)
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

import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

@Suite struct FIFOStreamTests {
    @Test func `ST-4 a file stream onto a FIFO ends in an error, and keeps no loop`() throws {
        let folder = NSTemporaryDirectory() + "rondo-fifo-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        let errors = try onLoopThread { _ -> [NSError?] in
            let input = InputStream(url: URL(fileURLWithPath: path))
            let output = OutputStream(url: URL(fileURLWithPath: path), append: true)
            input?.open()
            output?.open()
            return [input?.streamError, output?.streamError].map { $0 as NSError? }
        }
        for error in errors {
            #expect(error?.domain == NSPOSIXErrorDomain)
            #expect(error?.code == Int(EINVAL))
        }
    }
}

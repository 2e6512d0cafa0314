internal import RondoCore

/// A file as the body of a request: it is read as it is sent, up to the length that was announced.
///
/// The file is open only from `open()` to `close()`, so that uploads that wait for a connection hold no
/// descriptor.
final class FileBodyStream: Foundation.InputStream {
    private let path: String
    private let length: Int64
    private var descriptor: Int32 = -1
    private var position: Int64 = 0
    private var status = Foundation.Stream.Status.notOpen
    private var failure: NSError?

    /// - Parameter length: The maximum of bytes that are read from the file.
    init(_ path: String, length: Int64) {
        self.path = path
        self.length = length
        super.init(data: Data())
    }

    deinit { closeDescriptor() }

    /// A new stream of the same file, from its start.
    func reopened() -> FileBodyStream { FileBodyStream(path, length: length) }

    override func open() {
        guard status == .notOpen else { return }
        do throws(LoadFailure) {
            descriptor = try LocalFile.open(path).descriptor
            status = .open
        } catch {
            fail(URLErrors.anyError(error, url: nil) as NSError)
        }
    }

    override func close() {
        closeDescriptor()
        if status != .error { status = .closed }
    }

    private func closeDescriptor() {
        if descriptor >= 0 { _ = Foundation.close(descriptor) }
        descriptor = -1
    }

    private func fail(_ error: NSError) {
        failure = error
        status = .error
    }

    override var streamStatus: Foundation.Stream.Status {
        status == .open && position >= length ? .atEnd : status
    }

    override var streamError: (any Error)? { failure }

    override var hasBytesAvailable: Bool { status == .open && position < length }

    /// - Returns: 0 at the announced length, and at the end of a file that has become shorter.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
        guard status == .open, position < length else { return status == .error ? -1 : 0 }
        let room = Int(min(Int64(count), length - position))
        do throws(SystemError) {
            let read = try systemCall("read") { Foundation.read(descriptor, buffer, room) }
            position += Int64(read)
            return read
        } catch {
            let failure = LoadFailure.file(
                .cannotOpenFile, sentence: "The file \(path) could not be read", error)
            fail(URLErrors.anyError(failure, url: nil) as NSError)
            return -1
        }
    }

    /// False: the bytes are not in memory.
    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool {
        false
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The content of a `file:` or `data:` URL: a response, and its bytes piece by piece.
///
/// Used inside the gate of its load.
final class LocalContent {
    let response: URLResponse
    private var descriptor: Int32 = -1
    private var rest = Data()

    /// The number of bytes that are read from a file at once.
    private static let pieceSize = 128 * 1024

    static func canLoad(_ url: URL) -> Bool {
        switch url.scheme?.lowercased() {
        case "file", "data": true
        default: false
        }
    }

    init(_ url: URL) throws(LoadFailure) {
        if url.scheme?.lowercased() == "data" {
            guard let content = DataURL(url.absoluteString) else { throw .invalidDataURL }
            rest = content.data
            response = LocalResponse(
                url: url, mimeType: content.mimeType, expectedContentLength: content.data.count,
                textEncodingName: content.charset)
        } else {
            let (opened, length) = try LocalFile.open(url.path)
            descriptor = opened
            response = LocalResponse(
                url: url, mimeType: MediaType.of(pathExtension: url.pathExtension),
                expectedContentLength: length, textEncodingName: nil)
        }
    }

    deinit { close() }

    /// The next bytes; nil at the end.
    func next() throws(LoadFailure) -> Data? {
        guard descriptor >= 0 else {
            defer { rest = Data() }
            return rest.isEmpty ? nil : rest
        }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 16)
        do throws(SystemError) {
            let count = try systemCall("read") { read(descriptor, memory.baseAddress, memory.count) }
            guard count > 0, let base = memory.baseAddress else {
                memory.deallocate()
                return nil
            }
            // The data owns the memory from here on, and frees it.
            return Data(
                bytesNoCopy: base, count: count, deallocator: .custom { base, _ in base.deallocate() })
        } catch {
            memory.deallocate()
            throw .file(.cannotOpenFile, sentence: "The file could not be read", error)
        }
    }

    func close() {
        if descriptor >= 0 { _ = Foundation.close(descriptor) }
        descriptor = -1
        rest = Data()
    }
}

/// Foundation's response with a corrected file name, as in `LoadedResponse`.
final class LocalResponse: URLResponse, @unchecked Sendable {
    // `@unchecked` as the superclass is: nothing in it changes after initialisation.
    override var suggestedFilename: String? {
        SuggestedFilename.from(
            contentDisposition: nil, url: url?.isFileURL ?? false ? url : nil, mimeType: mimeType)
    }
}

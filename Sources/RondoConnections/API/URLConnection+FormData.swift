public import FoundationNetworking
public import RondoCore
package import RondoHTTP

extension URLConnection {
    /// A form with files for the body of a request: `multipart/form-data` (RFC 7578).
    ///
    /// Files are named and not read until the request is sent, a piece at a time, whatever their size; the length
    /// of the whole is known before. A value: changes after `setForm(_:)` have no effect on the request.
    ///
    /// ```swift
    /// var form = URLConnection.FormData()
    /// form.append("Rondo", name: "title")
    /// try form.append(file: url, name: "picture", contentType: "image/png")
    /// request.setForm(form)
    /// ```
    public struct FormData: Sendable {
        private var form = MultipartForm()

        public init() {}

        /// The value of Content-Type, with a boundary that cannot be guessed.
        public var contentType: String { form.contentType }

        /// Bytes of the body.
        public var length: Int64 { form.length }

        /// Appends a text, in UTF-8 and as it is.
        public mutating func append(_ value: String, name: String) {
            form.append(name: name, value: value)
        }

        /// Appends bytes.
        ///
        /// - Parameters:
        ///   - fileName: Without it servers take the field for no file.
        ///   - contentType: `application/octet-stream` where it is nil and there is a file name.
        public mutating func append(
            _ data: Data, name: String, fileName: String? = nil, contentType: String? = nil
        ) {
            form.append(name: name, fileName: fileName, contentType: contentType, .bytes(data))
        }

        /// Appends a file, which has to stay as it is until the request was sent: a load whose file has become
        /// shorter fails, what it has become longer by is not sent.
        ///
        /// - Parameter fileName: That of the file where it is nil.
        /// - Throws: What Foundation says if there is no such file; a `CocoaError` if it is none that has a length.
        public mutating func append(
            file url: URL, name: String, fileName: String? = nil, contentType: String? = nil
        ) throws {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: url.resolvingSymlinksInPath().path)
            guard attributes[.type] as? FileAttributeType == .typeRegular,
                let size = attributes[.size] as? NSNumber
            else { throw CocoaError(.fileReadUnknown, userInfo: [NSFilePathErrorKey: url.path]) }
            form.append(
                name: name, fileName: fileName ?? url.lastPathComponent, contentType: contentType,
                .file(path: url.path, length: size.int64Value))
        }

        /// A new stream of the body, unopened; for `connection(_:needNewBodyStream:)` too.
        public func makeStream() -> Foundation.InputStream { FormStream(form.segments) }

        /// A stream of bytes and files, one after the other, unopened.
        package static func stream(of segments: [MultipartForm.Segment]) -> Foundation.InputStream {
            FormStream(segments)
        }

        /// The whole body, if no file is part of it.
        fileprivate var data: Data? {
            var whole = Data()
            for segment in form.segments {
                guard case .bytes(let data) = segment else { return nil }
                whole.append(data)
            }
            return whole
        }
    }
}

extension URLRequest {
    /// Makes this a POST of `form`: method, Content-Type, Content-Length and body.
    ///
    /// With files in it the body is a stream; else it is data, which can be sent again at no cost.
    public mutating func setForm(_ form: URLConnection.FormData) {
        httpMethod = "POST"
        setValue(form.contentType, forHTTPHeaderField: "Content-Type")
        setValue(String(form.length), forHTTPHeaderField: "Content-Length")
        if let data = form.data { httpBody = data } else { httpBodyStream = form.makeStream() }
    }

    /// Makes this a POST of `fields` as `application/x-www-form-urlencoded`: in UTF-8, in this order, spaces
    /// as `+` (WHATWG URL §5.2).
    public mutating func setForm(_ fields: KeyValuePairs<String, String>) {
        httpMethod = "POST"
        setValue(URLEncodedForm.contentType, forHTTPHeaderField: "Content-Type")
        httpBody = Data(URLEncodedForm.encode(fields.map { ($0.key, $0.value) }).utf8)
    }
}

/// The segments of a form, one after the other. It always has bytes until its end.
private final class FormStream: Foundation.InputStream {
    private var segments: [MultipartForm.Segment]
    /// Bytes of the first segment that were read.
    private var position: Int64 = 0
    private var file: FileHandle?
    private var status = Status.notOpen
    private var failure: (any Error)?

    init(_ segments: [MultipartForm.Segment]) {
        self.segments = segments
        super.init(data: Data())
    }

    override var streamStatus: Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }

    override func open() {
        guard status == .notOpen else { return }
        status = .open
        skipEmptySegments()
    }

    override func close() {
        try? file?.close()  // it was only read
        file = nil
        segments = []
        status = .closed
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard status == .open, let segment = segments.first else { return status == .error ? -1 : 0 }
        let wanted = Int(min(Int64(maxLength), segment.length - position))
        do {
            let piece: Data
            switch segment {
            case .bytes(let data):
                let start = data.startIndex + Int(position)
                piece = data[start..<start + wanted]
            case .file(let path, _):
                piece = try read(path, wanted)
            }
            piece.copyBytes(to: buffer, count: piece.count)
            position += Int64(piece.count)
            if position == segment.length { nextSegment() }
            return piece.count
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    private func read(_ path: String, _ count: Int) throws -> Data {
        let handle = try file ?? FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        file = handle
        guard let piece = try handle.read(upToCount: count), !piece.isEmpty else {
            // It has become shorter, and its length was announced.
            throw CocoaError(.fileReadCorruptFile, userInfo: [NSFilePathErrorKey: path])
        }
        return piece
    }

    private func nextSegment() {
        try? file?.close()  // it was only read
        file = nil
        position = 0
        segments.removeFirst()
        skipEmptySegments()
    }

    private func skipEmptySegments() {
        while let first = segments.first, first.length == 0 { segments.removeFirst() }
        if segments.isEmpty { status = .atEnd }
    }
}

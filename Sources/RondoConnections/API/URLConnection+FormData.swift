public import FoundationNetworking
public import RondoCore
package import RondoHTTP

extension URLConnection {
    /// A form with files for the body of a request: `multipart/form-data` (RFC 7578).
    ///
    /// Files are only named at first: they are read piece by piece each time the request is sent, whatever
    /// their size, and the length of the whole is known before. A value: changes after `setForm(_:)` have no
    /// effect on the request.
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

        /// The length of the body in bytes.
        public var length: Int64 { form.length }

        /// Appends a text, unchanged, in UTF-8.
        public mutating func append(_ value: String, name: String) {
            form.append(name: name, value: value)
        }

        /// Appends bytes.
        ///
        /// - Parameters:
        ///   - fileName: If nil, servers do not treat the field as a file.
        ///   - contentType: If nil, `application/octet-stream` for a field with a file name.
        public mutating func append(
            _ data: Data, name: String, fileName: String? = nil, contentType: String? = nil
        ) {
            form.append(name: name, fileName: fileName, contentType: contentType, .bytes(data))
        }

        /// Appends a file, which must not change until the request has been sent: if it has become shorter,
        /// the load fails; if it has become longer, only its length at this call is sent.
        ///
        /// - Parameter fileName: If nil, the file's own name.
        /// - Throws: Foundation's error if there is no such file; a `CocoaError` if it is not a regular file.
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

        /// A new stream of the body, unopened. If it is the body of a request that has to be sent again, the
        /// files are read again, and the delegate is not asked for a stream.
        public func makeStream() -> Foundation.InputStream { FormStream(form.segments) }

        /// An unopened stream of bytes and files, one after the other.
        package static func stream(of segments: [MultipartForm.Segment]) -> Foundation.InputStream {
            FormStream(segments)
        }

        /// The whole body, if it contains no file.
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
    /// If the form has files, the body is a stream, otherwise data. Either can be sent again: files are read
    /// once more then, without a copy, and the delegate is not asked for a stream (rule UC-40).
    public mutating func setForm(_ form: URLConnection.FormData) {
        httpMethod = "POST"
        setValue(form.contentType, forHTTPHeaderField: "Content-Type")
        setValue(String(form.length), forHTTPHeaderField: "Content-Length")
        if let data = form.data { httpBody = data } else { httpBodyStream = form.makeStream() }
    }

    /// Makes this a POST of `fields` as `application/x-www-form-urlencoded`: in UTF-8, in their order, with
    /// spaces as `+` (WHATWG URL §5.2).
    public mutating func setForm(_ fields: KeyValuePairs<String, String>) {
        httpMethod = "POST"
        setValue(URLEncodedForm.contentType, forHTTPHeaderField: "Content-Type")
        httpBody = Data(URLEncodedForm.encode(fields.map { ($0.key, $0.value) }).utf8)
    }
}

/// A stream of the segments of a form, one after the other. It has bytes available until its end.
final class FormStream: Foundation.InputStream {
    private let form: [MultipartForm.Segment]
    /// What is still to be read of the form.
    private var segments: [MultipartForm.Segment]
    /// The number of bytes of the first segment that were read.
    private var position: Int64 = 0
    private var file: FileHandle?
    private var status = Status.notOpen
    private var failure: (any Error)?

    init(_ segments: [MultipartForm.Segment]) {
        form = segments
        self.segments = segments
        super.init(data: Data())
    }

    /// A new stream of the same form, from its start.
    func reopened() -> FormStream { FormStream(form) }

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
            case .file(let path, let offset, _):
                piece = try read(path, from: offset, wanted)
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

    private func read(_ path: String, from offset: Int64, _ count: Int) throws -> Data {
        if file == nil {
            let opened = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            try opened.seek(toOffset: UInt64(offset))
            file = opened
        }
        guard let piece = try file?.read(upToCount: count), !piece.isEmpty else {
            // The file has become shorter, after its length was announced.
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

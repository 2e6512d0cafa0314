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

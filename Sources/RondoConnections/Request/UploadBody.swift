package import FoundationNetworking
package import RondoCore

/// Makes the bodies of the requests of upload tasks (rules US-59 and US-60).
package enum UploadBody {
    /// `request` with a file as its body, which is read as it is sent, and from its start each time it has to
    /// be sent again.
    ///
    /// The length is that of the file now. Bytes that are appended before it is sent are left out; a file
    /// that has become shorter fails the load.
    ///
    /// - Throws: If the file does not exist, or cannot be read.
    package static func file(_ url: URL, of request: URLRequest) throws(LoadFailure) -> URLRequest {
        let (descriptor, length) = try LocalFile.open(url.path)
        _ = close(descriptor)
        var upload = request
        upload.httpBody = nil
        upload.httpBodyStream = FileBodyStream(url.path, length: Int64(length))
        upload.setValue("\(length)", forHTTPHeaderField: "Content-Length")
        return upload
    }

    /// `request` with a body whose stream the client is asked for before each sending. It is sent in chunks
    /// unless it has a Content-Length of its own.
    package static func streamed(_ request: URLRequest) -> URLRequest {
        var upload = request
        upload.httpBody = nil
        upload.httpBodyStream = AwaitedBodyStream(data: Data())
        return upload
    }

    /// The length of the body of `request` in bytes; -1 if it is not known, 0 if there is no body.
    package static func length(of request: URLRequest) -> Int64 {
        guard request.httpBodyStream != nil else { return Int64(request.httpBody?.count ?? 0) }
        guard let text = request.value(forHTTPHeaderField: "Content-Length"), let length = Int64(text),
            length >= 0
        else { return -1 }
        return length
    }
}

/// A placeholder for a body whose stream the client is asked for before each sending; it has no bytes itself.
final class AwaitedBodyStream: Foundation.InputStream {}

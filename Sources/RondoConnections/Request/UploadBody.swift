package import FoundationNetworking
package import RondoCore

/// The bodies that upload tasks give to their requests (rules US-59 and US-60).
package enum UploadBody {
    /// `request` with a file for its body, which is read as it is sent, and again from its start each time it has to be sent
    /// again.
    ///
    /// The length is what the file has now. What it gains until it is sent is left out; one that has become shorter fails the
    /// load.
    ///
    /// - Throws: The file is not there, or cannot be read.
    package static func file(_ url: URL, of request: URLRequest) throws(LoadFailure) -> URLRequest {
        let (descriptor, length) = try LocalFile.open(url.path)
        _ = close(descriptor)
        var upload = request
        upload.httpBody = nil
        upload.httpBodyStream = FileBodyStream(url.path, length: Int64(length))
        upload.setValue("\(length)", forHTTPHeaderField: "Content-Length")
        return upload
    }

    /// `request` with a body whose stream the client is asked for before each sending. Without a Content-Length of its own it
    /// is sent in chunks.
    package static func streamed(_ request: URLRequest) -> URLRequest {
        var upload = request
        upload.httpBody = nil
        upload.httpBodyStream = AwaitedBodyStream(data: Data())
        return upload
    }

    /// Bytes of the body of `request`; -1: not known, 0: it has none.
    package static func length(of request: URLRequest) -> Int64 {
        guard request.httpBodyStream != nil else { return Int64(request.httpBody?.count ?? 0) }
        guard let text = request.value(forHTTPHeaderField: "Content-Length"), let length = Int64(text),
            length >= 0
        else { return -1 }
        return length
    }
}

/// Stands for a body whose stream is asked for before each sending; it has no bytes itself.
final class AwaitedBodyStream: Foundation.InputStream {}

import Rondo
import RondoConnections

enum StandardInput {
    /// True if it can be read a second time.
    static var isFile: Bool {
        var status = stat()
        return fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// An unopened stream of it. Waiting for bytes of a pipe or a terminal does not block the run loop.
    static var stream: Foundation.InputStream? {
        isFile ? Foundation.InputStream(fileAtPath: "/dev/stdin") : InputStream(FileHandle.standardInput)
    }
}

// The bodies that are not in memory.
extension FetchRequest {
    /// The request for the library.
    func urlRequest() throws(FetchFailure) -> URLRequest {
        guard let url = url.url else { throw FetchURL.malformed(self.url.text, "it cannot be read") }
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        request.httpShouldHandleCookies = false
        // Only -m, --connect-timeout and -y limit the time, as in curl.
        request.timeoutInterval = .infinity
        request.httpMethod = method
        if let host = given.host, isAtOrigin {
            request.setValue(host, forHTTPHeaderField: "Host")
        } else if self.url.isWeb, self.url.host != self.url.host.lowercased() {
            request.setValue(self.url.authority, forHTTPHeaderField: "Host")
        }
        switch body {
        case .none: break
        case .data(let data) where !isChunked && !data.isEmpty: request.httpBody = data
        case .data, .segments, .input:
            request.httpBodyStream = stream
            if !isChunked, let length = body.length {
                request.setValue(String(length), forHTTPHeaderField: "Content-Length")
            }
        }
        return request
    }

    /// An unopened stream of the body; nil if there is no body, or it was read already and cannot be read
    /// again.
    var stream: Foundation.InputStream? {
        switch body {
        case .none: nil
        case .data(let data): Foundation.InputStream(data: data)
        case .segments(let segments): URLConnection.FormData.stream(of: segments)
        case .input: StandardInput.stream
        }
    }
}

import Rondo
import RondoConnections
import RondoLab

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
        case .data(let data) where !isChunked && !data.isEmpty && maximumRate == nil:
            request.httpBody = data
        case .input(let input): request.httpBodyStream = paced(try input.makeStream())
        case .data, .segments:
            request.httpBodyStream = stream
            if !isChunked, let length = body.length {
                request.setValue(String(length), forHTTPHeaderField: "Content-Length")
            }
        }
        return request
    }

    /// An unopened stream of the body; nil if there is none that can be read again.
    var stream: Foundation.InputStream? {
        switch body {
        case .none: nil
        // Making one fails if the bytes were read already.
        case .input(let input): try? paced(input.makeStream())
        case .data(let data): paced(InputStream(data: data))
        case .segments(let segments): paced(URLConnection.FormData.stream(of: segments))
        }
    }

    private func paced(_ stream: Foundation.InputStream) -> Foundation.InputStream {
        guard let maximumRate else { return stream }
        let stopwatch = Stopwatch()
        return PacedStream(stream, bytesPerSecond: maximumRate) { stopwatch.elapsed }
    }
}

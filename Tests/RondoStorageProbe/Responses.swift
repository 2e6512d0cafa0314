import Rondo

/// Prints the stored responses, and then stores responses until it is killed, or `count` of them: "found
/// NUMBER …" and "broken NUMBER …" for those below `first`, then "stored NUMBER" for each.
func storeResponses(in folder: String, from first: Int, count: Int) {
    setenv("XDG_CACHE_HOME", folder, 1)
    let cache = URLCache.shared
    var found: [String] = []
    var broken: [String] = []
    for number in 0..<first {
        guard let cached = cache.cachedResponse(for: request(number)) else { continue }
        let isWhole = cached.data == content(number) && cached.response.url == request(number).url
        if isWhole { found.append(String(number)) } else { broken.append(String(number)) }
    }
    say("found \(found.joined(separator: " "))")
    say("broken \(broken.joined(separator: " "))")
    for number in first..<(first + count) {
        guard let url = request(number).url,
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Cache-Control": "max-age=86400"])
        else { return }
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: content(number)), for: request(number))
        say("stored \(number)")
        // Some responses should be on disk before the program is killed; no result depends on their number.
        usleep(2_000)
    }
}

private func request(_ number: Int) -> URLRequest {
    guard let url = URL(string: "http://host.example/\(number)") else { fatalError("no URL") }
    return URLRequest(url: url)
}

private func content(_ number: Int) -> Data {
    Data((0..<(number % 50) * 300).map { UInt8(truncatingIfNeeded: $0 &* number) })
}

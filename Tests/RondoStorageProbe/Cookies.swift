import Rondo

/// Prints the stored cookies, and then stores cookies one after the other until it is killed, each with the
/// next number: "seen NAME=NUMBER …" for the program's cookies in Foundation's storage, "sent NAME=NUMBER; …"
/// for those sent with a request, "stored NAME=NUMBER" when a load has finished.
func storeCookies(in folder: String, from first: Int) {
    // Must be set before Foundation is asked for a folder.
    setenv("XDG_DATA_HOME", folder, 1)
    guard let server = EchoServer() else { return print("no server") }
    let seen = (HTTPCookieStorage.shared.cookies ?? []).map { "\($0.name)=\($0.value)" }
    say("seen \(seen.joined(separator: " "))")
    say("sent \(server.get("/"))")
    for number in first... {
        // The cookies in use: some are new, some are replaced.
        let name = "c\(number % 40)"
        _ = server.get("/\(name)=\(number);max-age=86400")
        say("stored \(name)=\(number)")
    }
}

/// Writes the line at once: output must not be lost when the program is killed.
func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}

/// Answers each connection's one request with the Cookie field of the request, and sets the cookie that the
/// path names.
private final class EchoServer: Sendable {
    let port: UInt16

    init?() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        guard isBound else { return nil }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            while true {
                let peer = accept(listener, nil, nil)
                if peer < 0 { continue }
                Self.serve(peer)
                close(peer)
            }
        }
    }

    private static func serve(_ peer: Int32) {
        var text = ""
        var bytes = [UInt8](repeating: 0, count: 16_384)
        while !text.contains("\r\n\r\n") {
            let count = read(peer, &bytes, bytes.count)
            if count <= 0 { return }
            text += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
        let lines = text.components(separatedBy: "\r\n")
        let cookie = lines.first { $0.hasPrefix("Cookie: ") }?.dropFirst(8) ?? ""
        let path = lines[0].split(separator: " ")[1].dropFirst()
        let field = path.isEmpty ? "" : "Set-Cookie: \(path)\r\n"
        let answer =
            "HTTP/1.1 200 OK\r\n\(field)Content-Length: \(cookie.utf8.count)\r\nConnection: close\r\n\r\n\(cookie)"
        let all = Array(answer.utf8)
        _ = write(peer, all, all.count)
    }

    func get(_ path: String) -> String {
        guard let url = URL(string: "http://127.0.0.1:\(port)\(path)") else { return "no URL" }
        do {
            var response: URLResponse?
            let data = try URLConnection.sendSynchronousRequest(URLRequest(url: url), returning: &response)
            return String(decoding: data, as: UTF8.self)
        } catch {
            return "\(error)"
        }
    }
}

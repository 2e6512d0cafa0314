// Downloads a URL of any size to a file, holding no more of it in memory than one piece.
// usage: DownloadToStream URL FILE

import Rondo

/// On the main thread's loop only.
final class Download: NSObject, URLConnectionDataDelegate {
    private let output: OutputStream
    private(set) var written = 0
    private(set) var failure: String?
    private(set) var isDone = false

    init(to output: OutputStream) {
        self.output = output
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        if write(data) { return }
        // Nothing follows a cancel(), so the end has to be noted here.
        connection.cancel()
        end(failure: output.streamError?.localizedDescription ?? "the file takes no more")
    }

    /// A stream may take less than it is offered: the rest is offered again, and -1 is an error.
    private func write(_ data: Data) -> Bool {
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { bytes in
                output.write(bytes.bindMemory(to: UInt8.self).baseAddress!, maxLength: bytes.count)
            }
            guard count > 0 else { return false }
            written += count
            rest = rest.dropFirst(count)
        }
        return true
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        end(failure: nil)
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        end(failure: error.localizedDescription)
    }

    private func end(failure: String?) {
        self.failure = failure
        output.close()
        isDone = true
    }
}

@main
struct DownloadToStream {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[1]) else {
            print("usage: DownloadToStream URL FILE")
            exit(2)
        }
        guard let output = OutputStream(toFileAtPath: arguments[2], append: false) else { exit(1) }
        output.open()
        let download = Download(to: output)
        guard URLConnection(request: URLRequest(url: url), delegate: download) != nil else { exit(1) }
        while !download.isDone {
            RunLoop.current.run(mode: .default, before: .distantFuture)
        }
        print(download.failure.map { "failed: \($0)" } ?? "\(download.written) bytes in \(arguments[2])")
        exit(download.failure == nil ? 0 : 1)
    }
}

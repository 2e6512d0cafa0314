import BenchmarkSupport
import Rondo

// W11: a server on `StreamListener` that reads a request and answers with two bytes.

/// Serves until it is killed.
///
/// - Parameters:
///   - once: Closes after each answer.
///   - loops: Each on a thread of its own, with a listener on the same port.
///   - certificate: With its key, for TLS; empty without.
func answerRequests(once: Bool, loops: Int, certificate: String, key: String) {
    do {
        var configuration = StreamListener.Configuration()
        configuration.sharesPort = loops > 1
        if !certificate.isEmpty {
            configuration.tls = .server(try TLSIdentity(chainFile: certificate, privateKeyFile: key))
        }
        let settings = configuration
        let first = try StreamListener(port: 0, host: "127.0.0.1", configuration: settings)
        let port = first.port
        for _ in 1..<max(loops, 1) {
            Thread.detachNewThread {
                do {
                    answer(
                        on: try StreamListener(port: port, host: "127.0.0.1", configuration: settings),
                        once: once)
                } catch {
                    fatalError("\(error)")
                }
            }
        }
        reportReady(port: port)
        answer(on: first, once: once)
    } catch {
        print(error)
        exit(1)
    }
}

private func answer(on listener: StreamListener, once: Bool) {
    listener.onConnection = { connection in Answerer(connection, once: once).begin(on: .current) }
    listener.schedule(in: .current, forMode: .default)
    runUntilStopped()
    listener.close()
}

/// One connection; lives until it is closed.
private final class Answerer: NSObject, StreamDelegate {
    private static let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
    private static let lastAnswer = Array(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".utf8)
    private static let requestEnd = Array("\r\n\r\n".utf8)

    private let input: InputStream
    private let output: OutputStream
    private let once: Bool
    private var request: [UInt8] = []
    private var unwritten: ArraySlice<UInt8> = []
    private var itself: Answerer?

    init(_ connection: StreamListener.Connection, once: Bool) {
        (input, output) = (connection.input, connection.output)
        self.once = once
        super.init()
    }

    func begin(on loop: RunLoop) {
        itself = self
        for stream in [input, output] as [Foundation.Stream] {
            stream.delegate = self
            stream.schedule(in: loop, forMode: .default)
            stream.open()
        }
    }

    func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
        switch event {
        case .hasBytesAvailable: read()
        case .hasSpaceAvailable: write()
        case .endEncountered, .errorOccurred: close()
        default: break
        }
    }

    private func read() {
        let count = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4_096) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            let count = input.read(start, maxLength: buffer.count)
            if count > 0 { request += buffer[..<count] }
            return count
        }
        guard count > 0, request.suffix(4).elementsEqual(Self.requestEnd) else { return }
        request.removeAll(keepingCapacity: true)
        unwritten = (once ? Self.lastAnswer : Self.answer)[...]
        write()
    }

    private func write() {
        while !unwritten.isEmpty, output.hasSpaceAvailable {
            let count = unwritten.withUnsafeBufferPointer { bytes in
                bytes.baseAddress.map { output.write($0, maxLength: bytes.count) } ?? 0
            }
            guard count > 0 else { return }
            unwritten = unwritten.dropFirst(count)
            if unwritten.isEmpty, once { close() }
        }
    }

    private func close() {
        input.close()
        output.close()
        itself = nil
    }
}

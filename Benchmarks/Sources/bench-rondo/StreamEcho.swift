import BenchmarkSupport
import Rondo

// W4 once more, by streams: what a program is likelier to use than descriptors.

/// Serves until it is killed.
func echoByStreams(port: UInt16) {
    do {
        let listener = try StreamListener(port: Int(port), host: "127.0.0.1")
        listener.onConnection = { connection in StreamEcho(connection).begin(on: .current) }
        listener.schedule(in: .current, forMode: .default)
        reportReady(port: listener.port)
        runUntilStopped()
        listener.close()
    } catch {
        print(error)
        exit(1)
    }
}

/// One connection: what was read is written back before more is read. Lives until it is closed.
private final class StreamEcho: NSObject, StreamDelegate {
    private let input: InputStream
    private let output: OutputStream
    private let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: 65_536)
    private var unwritten = 0..<0
    private var itself: StreamEcho?

    init(_ connection: StreamListener.Connection) {
        (input, output) = (connection.input, connection.output)
        super.init()
    }

    deinit { buffer.deallocate() }

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
        case .hasBytesAvailable: if unwritten.isEmpty { readAndWrite() }
        case .hasSpaceAvailable:
            guard !unwritten.isEmpty else { break }
            write()
            if unwritten.isEmpty, input.hasBytesAvailable { readAndWrite() }
        case .endEncountered, .errorOccurred:
            input.close()
            output.close()
            itself = nil
        default: break
        }
    }

    private func readAndWrite() {
        let count = input.read(buffer, maxLength: 65_536)
        guard count > 0 else { return }
        unwritten = 0..<count
        write()
    }

    private func write() {
        while !unwritten.isEmpty, output.hasSpaceAvailable {
            let count = output.write(buffer + unwritten.lowerBound, maxLength: unwritten.count)
            guard count > 0 else { return }
            unwritten = unwritten.lowerBound + count..<unwritten.upperBound
        }
    }
}

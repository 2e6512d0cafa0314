import BenchmarkSupport
import Rondo

/// A message of 64 bytes goes to and fro between the streams of two connected sockets.
func guardStreams() {
    let loop = RunLoop.current
    let count = 10_000
    let sockets = socketPairs(1)[0]
    let ends = [End(sockets.read, on: loop), End(sockets.write, on: loop)]
    ends[0].other = ends[1]
    ends[1].other = ends[0]
    while !ends.allSatisfy(\.isOpen) {
        _ = loop.run(in: .default, for: 1, returnAfterSourceHandled: true)
    }
    guarded("stream.message", count: count) {
        for end in ends { end.left = count / 2 }
        ends[0].send()
        runUntilStopped()
    }
    for end in ends { end.close() }
    for socket in [sockets.read, sockets.write] { close(socket) }
}

private final class End: NSObject, StreamDelegate {
    private let input: InputStream
    private let output: OutputStream
    private let loop: RunLoop
    private var buffer = [UInt8](repeating: 120, count: 64)
    private var opened = 0
    weak var other: End?
    var left = 0

    var isOpen: Bool { opened == 2 }

    init(_ socket: Int32, on loop: RunLoop) {
        var (input, output): (InputStream?, OutputStream?) = (nil, nil)
        Stream.getStreams(onSocket: socket, inputStream: &input, outputStream: &output)
        guard let input, let output else { fatalError("no streams") }
        (self.input, self.output, self.loop) = (input, output, loop)
        super.init()
        for stream in [input, output] as [Foundation.Stream] { stream.delegate = self }
        input.schedule(in: loop, forMode: .default)
        output.schedule(in: loop, forMode: .default)
        input.open()
        output.open()
    }

    func close() {
        input.close()
        output.close()
    }

    func send() {
        precondition(output.write(buffer, maxLength: buffer.count) == buffer.count)
    }

    func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
        switch event {
        case .openCompleted: opened += 1
        case .hasBytesAvailable:
            precondition(input.read(&buffer, maxLength: buffer.count) == buffer.count)
            left -= 1
            if left > 0 || other?.left ?? 0 > 0 { send() } else { loop.stop() }
        case .errorOccurred: fatalError("\(stream.streamError.map { "\($0)" } ?? "an error")")
        default: break
        }
    }
}

import BenchmarkSupport
import Rondo

// W7: what an open stream pair costs that nothing is said on.

func idleStreams(port: Int, _ count: Int) {
    let loop = RunLoop.current
    loop.add(Port(), forMode: .default)
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    let before = currentRSSKiB()
    let meter = Meter()
    var pairs: [(InputStream, OutputStream)] = []
    let opened = Opened()
    for _ in 0..<count {
        var (input, output): (InputStream?, OutputStream?) = (nil, nil)
        Stream.getStreamsToHost(
            withName: "127.0.0.1", port: port, inputStream: &input, outputStream: &output)
        guard let input, let output else { fatalError("no streams") }
        for stream in [input, output] as [Stream] { stream.delegate = opened }
        input.schedule(in: loop, forMode: .default)
        output.schedule(in: loop, forMode: .default)
        input.open()
        output.open()
        pairs.append((input, output))
    }
    while opened.count < 2 * count {
        _ = loop.run(in: .default, for: 1, returnAfterSourceHandled: true)
    }
    report(
        "W7.idle", peer, Double(currentRSSKiB() - before) * 1024 / Double(count), "bytes/connection",
        wall: meter.wall, cpu: meter.cpu)
    withExtendedLifetime(pairs) {}
}

private final class Opened: NSObject, StreamDelegate {
    private(set) var count = 0

    func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
        switch event {
        case .openCompleted: count += 1
        case .errorOccurred: fatalError("\(stream.streamError.map { "\($0)" } ?? "an error")")
        default: break
        }
    }
}

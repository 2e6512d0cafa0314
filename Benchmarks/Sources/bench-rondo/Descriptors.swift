import BenchmarkSupport
import Rondo

// W3 and W4.

// Global variables, as in the peer in C. `nonisolated(unsafe)` is safe: only the thread whose loop is measured
// touches them.
private nonisolated(unsafe) var writesLeft = 0
private nonisolated(unsafe) var eventsLeft = 0

func descriptors(_ count: Int, active: Int, events: Int, _ figure: String = "W3.fds") {
    let loop = RunLoop.current
    let pairs = socketPairs(count)
    (writesLeft, eventsLeft) = (events - active, events)
    for index in 0..<count {
        let next = pairs[(index + 1) % count].write
        let descriptor = pairs[index].read
        let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
            var byte: UInt8 = 0
            guard read(descriptor, &byte, 1) == 1 else { return }
            if writesLeft > 0 {
                writesLeft -= 1
                writeOneByte(next)
            }
            eventsLeft -= 1
            if eventsLeft == 0 { loop.stop() }
        }
        loop.add(source, forMode: .default)
    }
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    let meter = Meter()
    for index in 0..<active { writeOneByte(pairs[index * (count / active)].write) }
    runUntilStopped()
    let (wall, cpu) = (meter.wall, meter.cpu)
    report(figure, peer, wall * 1e9 / Double(events), "ns/event", wall: wall, cpu: cpu)
    report("\(figure).cpu", peer, cpu * 1e9 / Double(events), "cpu-ns/event", wall: wall, cpu: cpu)
}

/// Serves until it is killed.
func echo(port: UInt16) {
    let listener = listeningSocket(port: port)
    let loop = RunLoop.current
    loop.add(
        RunLoop.Source(fileDescriptor: listener, interest: .read) { _, _ in
            while true {
                guard let accepted = acceptedSocket(listener) else { return }
                loop.add(Echo(accepted).source, forMode: .default)
            }
        }, forMode: .default)
    reportReady(listener)
    runUntilStopped()
}

/// One connection: what was read is written back before more is read.
///
/// `@unchecked Sendable`: touched by the loop's thread only.
private final class Echo: @unchecked Sendable {
    private let descriptor: Int32
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    private var unwritten = 0..<0

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        buffer.deallocate()
        close(descriptor)
    }

    var source: RunLoop.Source {
        RunLoop.Source(fileDescriptor: descriptor, interest: .read) { [self] source, _ in turn(source) }
    }

    private func turn(_ source: RunLoop.Source) {
        if unwritten.isEmpty {
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            guard count > 0 else {
                if count == 0 || errno != EAGAIN { source.invalidate() }
                return
            }
            unwritten = 0..<count
        }
        while !unwritten.isEmpty {
            let count = write(descriptor, buffer.baseAddress! + unwritten.lowerBound, unwritten.count)
            guard count >= 0 else {
                if errno == EAGAIN { source.interest = .write } else { source.invalidate() }
                return
            }
            unwritten = unwritten.lowerBound + count..<unwritten.upperBound
        }
        if source.interest != .read { source.interest = .read }
    }
}

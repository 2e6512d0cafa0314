import BenchmarkSupport
import Rondo

// W13: children started, read and reaped, one at a time: by a stream and the child's completion, and as programs for Apple's
// systems do, by a pipe that is read to its end and a wait.

func children(_ count: Int) {
    let run = ChildrenRun(count)
    let m = Meter()
    run.beginNext()
    runUntilStopped()
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(run.bytes == count * 6)
    reportChildren(peer, count, wall: wall, cpu: cpu)
}

/// `@unchecked Sendable`: it is used on the thread of one loop.
private final class ChildrenRun: NSObject, StreamDelegate, @unchecked Sendable {
    private var left: Int
    private(set) var bytes = 0
    private var buffer = [UInt8](repeating: 0, count: 65_536)

    init(_ count: Int) { left = count }

    func beginNext() {
        do {
            let child = try Child.spawn("/bin/echo", ["words"], standardOutput: .stream)
            child.onCompletion = { [self] _, status in
                precondition(status == .exited(0))
                left -= 1
                if left > 0 { beginNext() } else { RunLoop.current.stop() }
            }
            child.schedule(in: .current, forMode: .default)
            child.output?.delegate = self
            child.output?.schedule(in: .current, forMode: .default)
            child.output?.open()
        } catch {
            fatalError("\(error)")
        }
    }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        guard let input = aStream as? InputStream else { return }
        switch eventCode {
        case .hasBytesAvailable:
            let count = input.read(&buffer, maxLength: buffer.count)
            if count > 0 { bytes += count }
        case .endEncountered, .errorOccurred: input.close()
        default: break
        }
    }
}

func processes(_ count: Int) {
    var bytes = 0
    let m = Meter()
    for _ in 0..<count {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/echo")
        process.arguments = ["words"]
        process.standardOutput = output
        do { try process.run() } catch { fatalError("\(error)") }
        bytes += output.fileHandleForReading.readDataToEndOfFile().count
        process.waitUntilExit()
        precondition(process.terminationStatus == 0)
    }
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(bytes == count * 6)
    reportChildren("rondo-process", count, wall: wall, cpu: cpu)
}

import Rondo
import RondoMutex
import RondoProbeSupport

/// A watched descriptor, and streams of handles, which any thread may close.
final class DescriptorRound: Round {
    private let loops: Loops
    private let happenings: Happenings
    private let watched: CFFileDescriptor
    private let writers: [FileHandle]
    private let handles: [FileHandle]
    /// Two simultaneous calls of Foundation's `closeFile()` would close two descriptors, so each handle is
    /// closed once.
    private let open = Mutex<Set<Int>>([0, 1])

    init(_ loops: Loops, _ random: inout Random) throws {
        self.loops = loops
        let happenings = Happenings(&random)
        self.happenings = happenings
        let pipes = (0..<3).map { _ in Pipe() }
        writers = pipes.map(\.fileHandleForWriting)
        handles = pipes.dropFirst().map(\.fileHandleForReading)
        var context = retaining(happenings)
        let native = fcntl(pipes[0].fileHandleForReading.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        watched = CFFileDescriptorCreate(nil, native, true, Self.called, &context)
        for handle in handles { DescriptorRound.read(handle, loops, &random, happenings) }
    }

    private static let called: CFFileDescriptorCallBack = { descriptor, _, info in
        guard let descriptor, let info else { return }
        let happenings = object(info, Happenings.self)
        switch happenings.chance(12) {
        case 0: CFFileDescriptorInvalidate(descriptor)
        case 1...8: CFFileDescriptorEnableCallBacks(descriptor, 1)
        default: happenings.runNested()
        }
    }

    /// Reads a stream on the thread of its loop.
    private static func read(
        _ handle: FileHandle, _ loops: Loops, _ random: inout Random, _ happenings: Happenings
    ) {
        let (loop, mode) = loops.place(&random)
        loop.perform(inModes: [mode]) {
            let stream = InputStream(handle)
            let reader = Reader(happenings, stream)
            stream.delegate = reader
            stream.schedule(in: .current, forMode: mode)
            stream.open()
        }
    }

    func step(_ random: inout Random, thread: Int, number: Int) {
        let (loop, mode) = loops.place(&random)
        switch random.number(below: 50) {
        case 0: CFFileDescriptorInvalidate(watched)
        case 1...8:
            if let source = CFFileDescriptorCreateRunLoopSource(nil, watched, 0) {
                loop.add(source, forMode: mode)
            }
        case 9...11:
            if let source = CFFileDescriptorCreateRunLoopSource(nil, watched, 0) {
                loop.remove(source, forMode: mode)
            }
        case 12...18: CFFileDescriptorEnableCallBacks(watched, 1)
        case 19...20: CFFileDescriptorDisableCallBacks(watched, 1)
        case 21: close(random.number(below: handles.count))
        case 22: Self.read(handles[random.number(below: handles.count)], loops, &random, happenings)
        default:
            let bytes = Array("\(thread) \(number);".utf8)
            _ = write(writers[random.number(below: writers.count)].fileDescriptor, bytes, bytes.count)
        }
    }

    private func close(_ number: Int) {
        if open.withLock({ $0.remove(number) }) != nil { try? handles[number].close() }
    }

    func finish() -> [String] {
        CFFileDescriptorInvalidate(watched)
        for number in handles.indices { close(number) }
        return happenings.failures
    }

    /// Reads a stream until its end. The stream retains the reader by the closure of `keep`.
    private final class Reader: StreamDelegate {
        private let happenings: Happenings
        private var stream: InputStream?
        private var me: Reader?

        init(_ happenings: Happenings, _ stream: InputStream) {
            self.happenings = happenings
            self.stream = stream
            me = self
        }

        func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
            switch eventCode {
            case .hasBytesAvailable:
                var bytes = [UInt8](repeating: 0, count: 64)
                if let stream, stream.hasBytesAvailable { _ = stream.read(&bytes, maxLength: bytes.count) }
                if happenings.chance(20) == 0 { end() }
                happenings.runNested()
            case .errorOccurred, .endEncountered: end()
            default: break
            }
        }

        private func end() {
            stream?.close()
            stream = nil
            me = nil
        }
    }
}

/// A look-up that all threads begin, schedule and cancel.
final class HostRound: Round {
    private let loops: Loops
    private let happenings: Happenings
    private let host: CFHost

    init(_ loops: Loops, _ random: inout Random) throws {
        self.loops = loops
        happenings = Happenings(&random)
        host = CFHostCreateWithName(nil, "127.0.0.1" as CFString).takeRetainedValue()
        var context = retaining(happenings)
        _ = CFHostSetClient(
            host,
            { host, _, _, info in
                guard let info else { return }
                let happenings = object(info, Happenings.self)
                if happenings.chance(3) == 0 { CFHostCancelInfoResolution(host, .addresses) }
                happenings.runNested()
            }, &context)
        let (loop, mode) = loops.place(&random)
        CFHostScheduleWithRunLoop(host, loop, mode)
    }

    func step(_ random: inout Random, thread: Int, number: Int) {
        let (loop, mode) = loops.place(&random)
        switch random.number(below: 20) {
        case 0...3: CFHostScheduleWithRunLoop(host, loop, mode)
        case 4: CFHostUnscheduleFromRunLoop(host, loop, mode)
        case 5...8: CFHostCancelInfoResolution(host, .addresses)
        case 9: _ = CFHostGetAddressing(host, nil)
        default:
            var error = CFStreamError()
            _ = CFHostStartInfoResolution(host, .addresses, &error)
        }
    }

    func finish() -> [String] {
        CFHostCancelInfoResolution(host, .addresses)
        _ = CFHostSetClient(host, nil, nil)
        return happenings.failures
    }
}

import RondoCore
import RondoTestSupport
import Testing

import struct Synchronization.Atomic

/// Descriptors that were closed while their source was scheduled, and whose number a run loop has got for
/// itself since. In processes of their own, where nothing else takes a number.
@Suite struct OwnDescriptorTests {
    @Test func `SRC-27 a closed number that becomes the epoll set of a new mode does not trap`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                loop.add(Port(), forMode: .default)
                loop.poll(.default)
                let source = closedSource()
                loop.add(source, forMode: .work)
                loop.poll(.work)
                try require(source, failedWith: EBADF)
            }.get()
        }
    }

    @Test
    func `SRC-27 a number closed after it was watched, and taken by another mode, does not trap`()
        async
    {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                let pipe = BytePipe()
                let number = dup(pipe.readEnd)
                let source = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in }
                loop.add(source, forMode: .default)
                loop.add(source, forMode: .work)
                loop.poll(.default)
                close(number)
                loop.poll(.work)
                // Each mode's set would watch the other's.
                let other = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in }
                loop.add(other, forMode: .default)
                loop.poll(.default)
                loop.poll(.work)
                try require(source, failedWith: EBADF)
                try require(other, failedWith: EBADF)
            }.get()
        }
    }

    @Test func `SRC-27 a closed number that becomes a loop's eventfd is not read from`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                // The eventfd and the timerfd of the loop, and its first epoll set, are the next three.
                let sources = (1...3).map { _ in closedSource(closes: false) }
                for source in sources { loop.add(source, forMode: .work) }
                for source in sources { close(source.number) }
                loop.poll(.work)
                loop.poll(.work)
                for source in sources { try require(source, failedWith: EBADF) }
                loop.wakeUp()
                loop.poll(.work)
            }.get()
        }
    }

    @Test func `SRC-27 a closed number that becomes an embedded mode's descriptor is not watched`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                loop.add(Port(), forMode: .work)
                loop.poll(.work)
                let source = closedSource()
                loop.add(source, forMode: .work)
                let embedding = try loop.embed(mode: .work)
                guard embedding.fileDescriptor == source.number else { throw Broken(what: "another number") }
                embedding.turn()
                try require(source, failedWith: EBADF)
                embedding.invalidate()
            }.get()
        }
    }

    @Test func `SRC-27 an epoll set that is nested too deeply is refused with the kernel's error`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                let epoll = try Epoll()
                var sets = [epoll.create(0)]
                while sets.count < 7 {
                    let outer = epoll.create(0)
                    guard epoll.watch(outer, sets[sets.count - 1]) else { break }
                    sets.append(outer)
                }
                let sources = sets.map { RunLoop.Source(fileDescriptor: $0, interest: .read) { _, _ in } }
                for source in sources { loop.add(source, forMode: .work) }
                loop.poll(.work)
                loop.poll(.work)
                guard let last = sources.last, !last.isValid else {
                    throw Broken(what: "the deepest is watched")
                }
                guard sources[0].isValid else { throw Broken(what: "the first is not") }
                guard let code = (last.error as NSError?)?.code, [Int(ELOOP), Int(EINVAL)].contains(code)
                else {
                    throw Broken(what: "\(String(describing: last.error))")
                }
            }.get()
        }
    }

    /// libev makes a new epoll set when a number stands for another file than it thought, and adds all its
    /// descriptors to it: a closed one must not be among them.
    @Test func `SRC-27 a closed descriptor does not trap when libev makes a new epoll set`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                let (first, second, third) = (BytePipe(), BytePipe(), BytePipe())
                let number = fcntl(first.readEnd, F_DUPFD, 300)
                let old = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in }
                let closedLater = fcntl(third.readEnd, F_DUPFD, 400)
                let stale = RunLoop.Source(fileDescriptor: closedLater, interest: .read) { _, _ in }
                loop.add(old, forMode: .work)
                loop.add(stale, forMode: .work)
                loop.poll(.work)
                // The kernel goes on watching the pipe, which has another descriptor.
                old.invalidate()
                dup2(second.readEnd, number)
                let count = EventLog()
                let new = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in
                    second.drain()
                    count.note("new")
                }
                loop.add(new, forMode: .work)
                loop.poll(.work)
                close(closedLater)
                first.write()
                for _ in 1...5 { loop.poll(.work) }
                second.write()
                for _ in 1...5 { loop.poll(.work) }
                try require(stale, failedWith: EBADF)
                guard count.entries == ["new"] else { throw Broken(what: "\(count.entries)") }
            }.get()
        }
    }

    /// The kernel goes on reporting a descriptor that was closed while another one of the same file is open; libev makes
    /// a new epoll set then.
    @Test func `SRC-27 another thread may close a descriptor while libev makes a new epoll set`() async {
        await #expect(processExitsWith: .success) {
            let (ready, silent, last) = (BytePipe(), BytePipe(), BytePipe())
            ready.write()
            let isOver = Atomic(false)
            let thread = LoopThread { loop in
                let served = EventLog()
                let others = (0..<100).map { _ in last.source("last", to: served) }
                for source in others { loop.add(source, forMode: .work) }
                for _ in 0..<2_000 {
                    let number = fcntl(ready.readEnd, F_DUPFD, 300)
                    let source = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in }
                    loop.add(source, forMode: .work)
                    loop.poll(.work)
                    source.invalidate()
                    close(number)
                    for _ in 0..<3 { loop.poll(.work) }
                }
                isOver.store(true, ordering: .releasing)
                // All are watched still.
                last.write()
                loop.poll(.work)
                return served.entries
            }
            let loop = try thread.loop
            let closing = (0..<2).map { _ in
                LoopThread { _ in
                    while !isOver.load(ordering: .acquiring) {
                        let number = dup(silent.readEnd)
                        let sources = [RunLoop.Source.Interest.read, .write].map {
                            RunLoop.Source(fileDescriptor: number, interest: $0) { _, _ in }
                        }
                        for source in sources { loop.add(source, forMode: .work) }
                        for _ in 0..<20 { sched_yield() }
                        for source in sources { source.invalidate() }
                        close(number)
                    }
                }
            }
            for other in closing { try other.value() }
            guard try thread.value() == ["last"] else { throw Broken(what: "an event is lost") }
        }
    }
}

/// The calls, which Swift's module of glibc lacks. Safe: the types are those of `sys/epoll.h`.
private struct Epoll {
    let create: @convention(c) (Int32) -> Int32
    private let control: @convention(c) (Int32, Int32, Int32, UnsafeMutableRawPointer) -> Int32

    init() throws {
        guard let create = dlsym(nil, "epoll_create1"), let control = dlsym(nil, "epoll_ctl") else {
            throw Broken(what: "no epoll")
        }
        self.create = unsafeBitCast(create, to: (@convention(c) (Int32) -> Int32).self)
        self.control = unsafeBitCast(
            control, to: (@convention(c) (Int32, Int32, Int32, UnsafeMutableRawPointer) -> Int32).self)
    }

    /// EPOLL_CTL_ADD of EPOLLIN.
    func watch(_ set: Int32, _ descriptor: Int32) -> Bool {
        // An `epoll_event` has at most 16 bytes; its events come first.
        var event: [UInt32] = [1, 0, 0, 0]
        return control(set, 1, descriptor, &event) == 0
    }
}

private struct Broken: Error { let what: String }

/// A source whose descriptor is closed: the number is the next that is given out.
private func closedSource(closes: Bool = true) -> RunLoop.Source {
    let number = dup(0)
    let source = RunLoop.Source(fileDescriptor: number, interest: .read) { _, _ in }
    source.label = "\(number)"
    if closes { close(number) }
    return source
}

private func require(_ source: RunLoop.Source, failedWith code: Int32) throws {
    guard !source.isValid else { throw Broken(what: "the source of \(source.number) is valid") }
    let error = source.error as NSError?
    guard error?.domain == NSPOSIXErrorDomain, error?.code == Int(code) else {
        throw Broken(what: "\(String(describing: error))")
    }
}

extension RunLoop.Source {
    fileprivate var number: Int32 { label.flatMap { Int32($0) } ?? -1 }
}

/// As the other `onLoopThread`, for a body that may throw.
private func onLoopThread(
    _ body: @escaping @Sendable (RunLoop) throws -> Void
) throws -> Result<Void, any Error> {
    try LoopThread { loop in Result { try body(loop) } }.value()
}

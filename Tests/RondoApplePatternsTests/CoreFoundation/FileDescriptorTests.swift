import CRondoEv
import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFFileDescriptor, in the words of programs that call it.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct FileDescriptorTests {
    private static func noted(
        _ descriptor: Int32, _ notes: ContextNotes, closes: Bool = true,
        _ callout: @escaping CFFileDescriptorCallBack = { _, types, info in
            ContextNotes.of(info)?.log.note("\(types)")
        }
    ) -> CFFileDescriptor {
        var context = CFFileDescriptorContext(
            version: 0, info: notes.info, retain: nil, release: nil, copyDescription: nil)
        return CFFileDescriptorCreate(kCFAllocatorDefault, descriptor, closes, callout, &context)
    }

    private static func schedule(_ descriptor: CFFileDescriptor, _ mode: CFRunLoopMode = .defaultMode) {
        let source = CFFileDescriptorCreateRunLoopSource(kCFAllocatorDefault, descriptor, 0)
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode)
    }

    @Test func `CS-16 a file descriptor's callback is made once each time it is enabled`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let descriptor = Self.noted(near, notes)
            Self.schedule(descriptor)
            put("x", into: far)
            passes(3)
            #expect(notes.log.entries.isEmpty)
            CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            passes(3)
            #expect(notes.log.entries == ["1"])
            // There still is something.
            CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            passes(3)
            #expect(notes.log.entries == ["1", "1"])
            CFFileDescriptorEnableCallBacks(
                descriptor, kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack)
            CFFileDescriptorDisableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            passes(3)
            #expect(notes.log.entries == ["1", "1", "2"])
            CFFileDescriptorEnableCallBacks(
                descriptor, kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack)
            passes(3)
            #expect(notes.log.entries == ["1", "1", "2", "3"])
            CFFileDescriptorInvalidate(descriptor)
        }
    }

    @Test func `CS-16 a file descriptor without an enabled callback says what to call`() throws {
        let thread = RunLoopThread(name: "explained")
        let loop = thread.start()
        defer {
            thread.stop()
            thread.join()
        }
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        let descriptor = Self.noted(near, notes)
        let source = CFFileDescriptorCreateRunLoopSource(kCFAllocatorDefault, descriptor, 0)
        CFRunLoopAddSource(loop, source, .defaultMode)
        let obstacle = try waitFor("a loop that sleeps beside the descriptor") {
            let found = descriptor.whyNotDelivering
            return found.reason == .waitsForNothing ? found : nil
        }
        #expect(obstacle.description == "no callback is enabled: call CFFileDescriptorEnableCallBacks")
        CFFileDescriptorInvalidate(descriptor)
    }

    @Test func `CS-16 a program reads a FIFO that another one writes`() throws {
        let path = NSTemporaryDirectory() + "rondo-\(UUID().uuidString)"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let fifo = open(path, O_RDONLY | O_NONBLOCK)
        let notes = ContextNotes()
        try onLoopThread { _ in
            let descriptor = Self.noted(fifo, notes) { descriptor, types, info in
                var buffer = [UInt8](repeating: 0, count: 100)
                let count = read(CFFileDescriptorGetNativeDescriptor(descriptor), &buffer, buffer.count)
                ContextNotes.of(info)?.append(Data(buffer.prefix(max(0, count))))
                ContextNotes.of(info)?.log.note("\(count)")
                if count == 0 { return CFRunLoopStop(CFRunLoopGetCurrent()) }
                CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            }
            Self.schedule(descriptor)
            CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            let stranger = try? TestServerProcess(["sh", "-c", "exec > \(path); printf hello; printf ' you'"])
            runLoop { notes.log.entries.last == "0" }
            withExtendedLifetime(stranger) {}
            CFFileDescriptorInvalidate(descriptor)
        }
        #expect(notes.text == "hello you")
        #expect(!isOpen(fifo))
    }

    @Test func `CS-16 a file descriptor in two loops is called back by one of them each time`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        let descriptor = Self.noted(near, notes)
        let threads = (0..<2).map { _ in
            LoopThread { _ in
                Self.schedule(descriptor)
                CFRunLoopRun()
            }
        }
        for thread in threads { try thread.loop.waitUntilAsleep() }
        put("x", into: far)
        for count in 1...20 {
            CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            try waitFor("a callback") { notes.log.entries.count >= count ? () : nil }
        }
        CFFileDescriptorInvalidate(descriptor)
        for thread in threads { try thread.value() }
        #expect(notes.log.entries.count == 20)
    }

    @Test
    func `CS-17 an invalidated CFFileDescriptor leaves its loop, and closes if made so`() throws {
        for closes in [true, false] {
            let (near, far) = try socketPair()
            defer { close(far) }
            let notes = ContextNotes()
            try onLoopThread { _ in
                let descriptor = Self.noted(near, notes, closes: closes) { descriptor, types, info in
                    ContextNotes.of(info)?.log.note("\(types)")
                    CFFileDescriptorInvalidate(descriptor)
                    CFFileDescriptorEnableCallBacks(descriptor, types)
                }
                Self.schedule(descriptor)
                CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
                put("x", into: far)
                passes(3)
                #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
                #expect(!CFFileDescriptorIsValid(descriptor) && isOpen(near) != closes)
                #expect(CFFileDescriptorGetNativeDescriptor(descriptor) == -1)
                #expect(CFFileDescriptorCreateRunLoopSource(nil, descriptor, 0) == nil)
                #expect(descriptor.whyNotDelivering.reason == .invalid)
            }
            #expect(notes.log.entries == ["1"])
            if !closes { close(near) }
        }
    }

    @Test func `CS-17 a socket without references is invalidated, and its info released`() throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            var context = CFFileDescriptorContext(
                version: 0, info: notes.info, retain: ContextNotes.retain, release: ContextNotes.release,
                copyDescription: ContextNotes.describe)
            let descriptor = CFFileDescriptorCreate(nil, near, true, { _, _, _ in }, &context)
            // The loop holds it as long as its thread lives.
            Self.schedule(descriptor!)
            var copy = CFFileDescriptorContext()
            CFFileDescriptorGetContext(descriptor, &copy)
            #expect(copy.info == notes.info && notes.retains == 1 && notes.releases == 0)
        }
        #expect(notes.releases == 1 && !isOpen(near))
    }

    @Test
    func `CS-17 SRC-27 a CFFileDescriptor whose number was closed becomes invalid, and spares its successor`()
        throws
    {
        #expect(CFFileDescriptorCreate(nil, -1, true, { _, _, _ in }, nil) == nil)
        let notes = ContextNotes()
        try onLoopThread { _ in
            // Closed, watched or not, and given out again.
            for isWatched in [false, true] {
                guard let (near, far) = try? socketPair() else { return }
                let descriptor = Self.noted(near, notes)
                Self.schedule(descriptor)
                if isWatched {
                    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
                    passes(1)
                }
                close(near)
                guard let (other, otherFar) = try? socketPair() else { return }
                if other != near { dup2(other, near) }
                put("not for it", into: otherFar)
                CFFileDescriptorEnableCallBacks(
                    descriptor, kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack)
                runLoop { !CFFileDescriptorIsValid(descriptor) }
                CFFileDescriptorInvalidate(descriptor)
                #expect(take(from: near) == "not for it")
                for each in Set([near, far, other, otherFar]) { close(each) }
            }
        }
        #expect(notes.log.entries.isEmpty)
    }

    @Test func `CS-18 a regular file counts as ready, and an epoll descriptor can be watched`() throws {
        let (near, far) = try socketPair()
        let path = NSTemporaryDirectory() + "rondo-\(UUID().uuidString)"
        try Data("text".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        let notes = ContextNotes()
        try onLoopThread { _ in
            let file = Self.noted(open(path, O_RDWR), notes)
            Self.schedule(file)
            CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack)
            runLoop { notes.log.entries == ["1"] }
            passes(2)
            CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorWriteCallBack)
            runLoop { notes.log.entries == ["1", "2"] }
            CFFileDescriptorInvalidate(file)
            // In the place of a kqueue.
            let set = epoll_create1(0)
            var event = epoll_event(events: UInt32(EPOLLIN.rawValue), data: epoll_data_t(fd: near))
            epoll_ctl(set, EPOLL_CTL_ADD, near, &event)
            let watcher = Self.noted(set, notes)
            Self.schedule(watcher)
            CFFileDescriptorEnableCallBacks(watcher, kCFFileDescriptorReadCallBack)
            passes(2)
            #expect(notes.log.entries == ["1", "2"])
            put("x", into: far)
            runLoop { notes.log.entries.count == 3 }
            CFFileDescriptorInvalidate(watcher)
        }
        #expect(notes.log.entries == ["1", "2", "1"])
        for each in [near, far] { close(each) }
    }

    @Test func `CS-18 descriptors above 1,024 are watched, those of sockets too`() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try #require(limit.rlim_cur > 2_000, "needs more descriptors: ulimit -n 4096")
        let (near, far) = try socketPair()
        let high = fcntl(near, F_DUPFD_CLOEXEC, 1_500)
        let higher = fcntl(near, F_DUPFD_CLOEXEC, high + 1)
        #expect(high >= 1_500)
        let notes = ContextNotes()
        try onLoopThread { _ in
            let descriptor = Self.noted(high, notes)
            Self.schedule(descriptor)
            CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack)
            put("x", into: far)
            runLoop { notes.log.entries == ["1"] }
            CFFileDescriptorInvalidate(descriptor)
            var context = CFSocketContext(info: notes.info)
            let socket = CFSocketCreateWithNative(
                nil, higher, CFSocketCallBackType.dataCallBack.rawValue, noteAll, &context)
            RondoApplePatternsTests.schedule(socket)
            runLoop { notes.log.entries == ["1", "data"] }
            CFSocketInvalidate(socket)
        }
        #expect(notes.log.entries == ["1", "data"] && !isOpen(high) && !isOpen(higher))
        for each in [near, far] { close(each) }
    }
}

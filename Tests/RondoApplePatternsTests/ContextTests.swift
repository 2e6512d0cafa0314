import Rondo
import RondoTestSupport
import Testing

/// Tests what Core Foundation's contexts promise: `info` is retained, released, described and handed back.
@Suite(.leavesNothing) struct ContextTests {
    @Test func `SRC-9 SRC-11 a source of version 0 retains its info until it is invalidated`() throws {
        weak var weakInfo: ContextNotes?
        let names = try {
            let info = ContextNotes("commands")
            weakInfo = info
            var context = CFRunLoopSourceContext(
                version: 0, info: Unmanaged.passUnretained(info).toOpaque(), retain: ContextNotes.retain,
                release: ContextNotes.release, copyDescription: ContextNotes.describe, equal: nil, hash: nil,
                schedule: { info, _, mode in
                    ContextNotes.of(info)?.log.note("schedule \(mode?.rawValue ?? "nil")")
                },
                cancel: { info, _, _ in ContextNotes.of(info)?.log.note("cancel") },
                perform: { info in ContextNotes.of(info)?.log.note("perform") })
            let source = CFRunLoopSourceCreate(kCFAllocatorDefault, 7, &context)
            var copy = CFRunLoopSourceContext()
            CFRunLoopSourceGetContext(source, &copy)
            #expect(copy.info == context.info && copy.version == 0)
            #expect(source?.label == "commands")
            #expect(CFRunLoopSourceGetOrder(source) == 7)
            try onLoopThread { _ in
                CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFRunLoopMode("mine"))
                CFRunLoopSourceSignal(source)
                CFRunLoopRunInMode(CFRunLoopMode("mine"), 0, false)
                CFRunLoopSourceInvalidate(source)
            }
            #expect(info.retains == 1 && info.releases == 1)
            var none = CFRunLoopSourceContext(version: 99)
            CFRunLoopSourceGetContext(source, &none)
            #expect(none.version == 99)
            return info.log.entries
        }()
        #expect(names == ["schedule mine", "perform", "cancel"])
        #expect(weakInfo == nil)
    }

    /// `equal` and `hash` are never called (rule SRC-13).
    @Test func `SRC-11 a context has the types of Apple's, and takes a retained description`() {
        weak var weakName: NSString?
        do {
            // Too long for a string without an object.
            let name = NSString(string: String(repeating: "commands ", count: 10))
            weakName = name
            var context = CFRunLoopSourceContext()
            context.info = Unmanaged.passUnretained(name).toOpaque()
            context.copyDescription = { info in
                let name = info.map { Unmanaged<NSString>.fromOpaque($0).takeUnretainedValue() }
                return name.map { Unmanaged.passRetained($0) }
            }
            context.equal = { first, second in DarwinBoolean(first == second) }
            context.hash = { info in CFHashCode(bitPattern: info) }
            let source = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
            #expect(source?.label == name as String)
        }
        #expect(weakName == nil)
    }

    @Test func `SRC-14 a source of version 1 is served when the descriptor of its getPort can be read`()
        throws
    {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let info = ContextNotes("\(ends[0])")
        var context = CFRunLoopSourceContext1(
            version: 1, info: Unmanaged.passUnretained(info).toOpaque(), retain: ContextNotes.retain,
            release: ContextNotes.release,
            getPort: { info in Int32(ContextNotes.of(info)?.name ?? "") ?? -1 },
            perform: { info in
                var byte: UInt8 = 0
                guard let info = ContextNotes.of(info), let descriptor = Int32(info.name) else { return }
                info.log.note("read \(read(descriptor, &byte, 1))")
                CFRunLoopStop(CFRunLoopGetCurrent())
            })
        let source = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
        var copy = context
        copy.version = 99
        CFRunLoopSourceGetContext(source, &copy)
        #expect(copy.version == 1)
        var byte: UInt8 = 1
        try #require(write(ends[1], &byte, 1) == 1)
        let result = try onLoopThread { _ in
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
            // The kernel alone signals it (rule SRC-14).
            CFRunLoopSourceSignal(source)
            defer { CFRunLoopSourceInvalidate(source) }
            return CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)
        }
        #expect(result == .stopped)
        #expect(info.log.entries == ["read 1"])
        #expect(info.retains == 1 && info.releases == 1)
    }

    @Test func `SRC-22 TM-15 timers and observers retain their info until they are invalidated or go`() throws
    {
        let info = ContextNotes("beat")
        try onLoopThread { _ in
            var timerContext = CFRunLoopTimerContext(
                version: 0, info: Unmanaged.passUnretained(info).toOpaque(), retain: ContextNotes.retain,
                release: ContextNotes.release, copyDescription: ContextNotes.describe)
            var observerContext = CFRunLoopObserverContext(
                version: 0, info: Unmanaged.passUnretained(info).toOpaque(), retain: ContextNotes.retain,
                release: ContextNotes.release, copyDescription: ContextNotes.describe)
            let timer = CFRunLoopTimerCreate(
                kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0, 0, 0,
                { timer, info in
                    // It fires once and is invalid after it: the info lives on until it returns.
                    CFRunLoopTimerInvalidate(timer)
                    ContextNotes.of(info)?.log.note("timer")
                }, &timerContext)
            let observer = CFRunLoopObserverCreate(
                kCFAllocatorDefault, CFRunLoopActivity.exit.rawValue, true, 0,
                { _, _, info in ContextNotes.of(info)?.log.note("observer") }, &observerContext)
            #expect(timer?.label == "beat" && observer?.label == "beat")
            var timerCopy = CFRunLoopTimerContext()
            CFRunLoopTimerGetContext(timer, &timerCopy)
            var observerCopy = CFRunLoopObserverContext()
            CFRunLoopObserverGetContext(observer, &observerCopy)
            #expect(timerCopy.info == timerContext.info && observerCopy.info == timerContext.info)
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode)
            CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode)
            CFRunLoopRun()
            #expect(info.releases == 1)
        }
        // The observer has gone with its loop.
        #expect(info.log.entries == ["timer", "observer"])
        #expect(info.retains == 2 && info.releases == 2)
    }

    /// It compiles: every line is spelt as on Apple's systems.
    @Test func `Apple's Swift spellings of modes, loops and blocks compile and work`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            guard let loop = CFRunLoopGetCurrent() else { return }
            #expect(RunLoop.current.getCFRunLoop() === loop)
            var context = CFRunLoopSourceContext()
            context.perform = { _ in log.note("source") }
            let source: CFRunLoopSource = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
            CFRunLoopAddSource(loop, source, .defaultMode)
            let timer: CFRunLoopTimer = CFRunLoopTimerCreateWithHandler(kCFAllocatorDefault, 0, 0, 0, 5) {
                _ in
            }
            #expect(CFRunLoopTimerGetOrder(timer) == 5)
            CFRunLoopSourceSignal(source)
            CFRunLoopPerformBlock(loop, CFRunLoopMode.commonModes.rawValue) { log.note("by name") }
            CFRunLoopPerformBlock(loop, [.defaultMode, CFRunLoopMode("mine")]) {
                let mode: CFRunLoopMode = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent())
                log.note("in \(mode == .defaultMode)")
            }
            CFRunLoopRunInMode(.defaultMode, 0, false)
            CFRunLoopRemoveSource(loop, source, .defaultMode)
        }
        #expect(log.entries == ["by name", "in true", "source"])
    }

    @Test func `type identifiers tell the kinds apart`() throws {
        var context = CFRunLoopSourceContext(perform: { _ in })
        let source = try #require(CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context))
        let timer = try #require(CFRunLoopTimerCreateWithHandler(kCFAllocatorDefault, 0, 0, 0, 0) { _ in })
        let observer = try #require(
            CFRunLoopObserverCreateWithHandler(kCFAllocatorDefault, 1, true, 0) { _, _ in })
        #expect(CFGetTypeID(source) == CFRunLoopSourceGetTypeID())
        #expect(CFGetTypeID(timer) == CFRunLoopTimerGetTypeID())
        #expect(CFGetTypeID(observer) == CFRunLoopObserverGetTypeID())
        #expect(CFGetTypeID(CFRunLoopGetMain()) == CFRunLoopGetTypeID())
        #expect(
            Set([
                CFRunLoopGetTypeID(), CFRunLoopSourceGetTypeID(), CFRunLoopTimerGetTypeID(),
                CFRunLoopObserverGetTypeID(),
            ]).count == 4)
    }
}

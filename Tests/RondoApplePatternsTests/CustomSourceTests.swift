import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// The run loop source of the Threading Programming Guide, which other threads feed with commands.
@Suite(.leavesNothing) struct CustomSourceTests {
    /// A thread whose loop runs with the source until it is stopped.
    private static func run(_ input: CommandSource) -> LoopThread<Void> {
        LoopThread { _ in
            input.addToCurrentRunLoop()
            CFRunLoopRun()
            input.invalidate()
        }
    }

    @Test
    func `SRC-1 SRC-9 SRC-10 a custom source is scheduled, fed from another thread, performed and cancelled`()
        throws
    {
        let input = CommandSource()
        let thread = Self.run(input)
        let loop = try thread.loop
        try waitFor("the source's loop") {
            input.log.entries == ["schedule kCFRunLoopDefaultMode"] ? () : nil
        }
        for command in 1...3 {
            try waitFor("an idle loop") { CFRunLoopIsWaiting(loop) ? () : nil }
            input.add(command)
            input.fireAllCommands(on: loop)
            try waitFor("the command") { input.log.entries.last == "command \(command)" ? () : nil }
        }
        input.add(0)
        input.fireAllCommands(on: loop)
        try thread.value()
        #expect(
            input.log.entries == [
                "schedule kCFRunLoopDefaultMode", "command 1", "command 2", "command 3", "stop",
                "cancel kCFRunLoopDefaultMode",
            ])
        #expect(!input.isValid)
    }

    @Test func `SRC-2 RL-49 a signal without CFRunLoopWakeUp waits`() throws {
        let input = CommandSource()
        let thread = Self.run(input)
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        input.add(0)
        input.signal()
        #expect(CFRunLoopIsWaiting(loop))
        #expect(input.log.entries == ["schedule kCFRunLoopDefaultMode"])
        CFRunLoopWakeUp(loop)
        try thread.value()
        #expect(input.log.entries.contains("stop"))
    }

    @Test func `SRC-6 RL-23 sources have an order, and belong to the modes they were added to`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            let sources = [30, 10, 20].compactMap { order in
                var context = CFRunLoopSourceContext(perform: { _ in log.note("\(order)") })
                return CFRunLoopSourceCreate(kCFAllocatorDefault, order, &context)
            }
            for source in sources {
                CFRunLoopAddSource(loop, source, kCFRunLoopCommonModes)
                CFRunLoopSourceSignal(source)
            }
            log.note("\(sources.map { CFRunLoopSourceGetOrder($0) })")
            log.note("\(CFRunLoopContainsSource(loop, sources[0], kCFRunLoopCommonModes))")
            log.note("\(CFRunLoopContainsSource(loop, sources[0], kCFRunLoopDefaultMode))")
            log.note("\(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false))")
            CFRunLoopRemoveSource(loop, sources[0], kCFRunLoopCommonModes)
            log.note("\(CFRunLoopContainsSource(loop, sources[0], kCFRunLoopDefaultMode))")
            log.note("\(CFRunLoopSourceIsValid(sources[0]))")
            for source in sources { CFRunLoopSourceInvalidate(source) }
            log.note("\(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false))")
        }
        #expect(
            log.entries == [
                "[30, 10, 20]", "true", "true", "10", "20", "30", "timedOut", "false", "true", "finished",
            ])
    }
}

/// `RunLoopSource` of the guide: commands in a buffer, and the three callbacks.
private final class CommandSource: Sendable {
    let log = EventLog()
    private let commands = Mutex<[Int]>([])
    private let source = Mutex<CFRunLoopSource?>(nil)

    var isValid: Bool { CFRunLoopSourceIsValid(source.withLock { $0 }) }

    func addToCurrentRunLoop() {
        // The source does not outlive this object.
        var context = CFRunLoopSourceContext(
            version: 0, info: Unmanaged.passUnretained(self).toOpaque(),
            schedule: { info, loop, mode in
                guard loop === CFRunLoopGetCurrent() else { return }
                Self.from(info)?.log.note("schedule \(mode?.rawValue ?? "nil")")
            },
            cancel: { info, _, mode in Self.from(info)?.log.note("cancel \(mode?.rawValue ?? "nil")") },
            perform: { info in Self.from(info)?.perform() })
        let made = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
        source.withLock { $0 = made }
        CFRunLoopAddSource(CFRunLoopGetCurrent(), made, kCFRunLoopDefaultMode)
    }

    private static func from(_ info: UnsafeMutableRawPointer?) -> CommandSource? {
        info.map { Unmanaged<CommandSource>.fromOpaque($0).takeUnretainedValue() }
    }

    private func perform() {
        let found = commands.withLock { commands in
            defer { commands = [] }
            return commands
        }
        for command in found {
            if command == 0 {
                log.note("stop")
                CFRunLoopStop(CFRunLoopGetCurrent())
            } else {
                log.note("command \(command)")
            }
        }
    }

    func add(_ command: Int) { commands.withLock { $0.append(command) } }

    func signal() { CFRunLoopSourceSignal(source.withLock { $0 }) }

    func fireAllCommands(on loop: CFRunLoop) {
        signal()
        CFRunLoopWakeUp(loop)
    }

    func invalidate() { CFRunLoopSourceInvalidate(source.withLock { $0 }) }
}

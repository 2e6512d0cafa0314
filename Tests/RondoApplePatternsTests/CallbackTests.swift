import Rondo
import RondoTestSupport
import Testing

/// Observers, timers and blocks by Core Foundation's names.
@Suite(.leavesNothing) struct CallbackTests {
    @Test func `RL-52 an observer made with a handler sees an activation from entry to exit`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            let observer = CFRunLoopObserverCreateWithHandler(
                kCFAllocatorDefault, CFRunLoopActivity.allActivities.rawValue, true, 0
            ) { _, activity in log.note(activity.name) }
            CFRunLoopAddObserver(loop, observer, kCFRunLoopDefaultMode)
            let timer = CFRunLoopTimerCreateWithHandler(
                kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0, 0, 0
            ) { _ in log.note("timer") }
            CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode)
            CFRunLoopRun()
            log.note("\(CFRunLoopObserverIsValid(observer)) \(CFRunLoopTimerIsValid(timer))")
        }
        #expect(
            log.entries == [
                "entry", "beforeTimers", "beforeSources", "beforeWaiting", "afterWaiting", "timer", "exit",
                "true false",
            ])
    }

    @Test func `SRC-18 SRC-20 an observer made with a callback gets its info, once if it does not repeat`()
        throws
    {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            var context = CFRunLoopObserverContext(info: Unmanaged.passUnretained(log).toOpaque())
            let activities = CFRunLoopActivity([.entry, .exit]).rawValue
            let observer = CFRunLoopObserverCreate(
                kCFAllocatorDefault, activities, false, 5,
                { observer, activity, info in
                    guard let info else { return }
                    let log = Unmanaged<EventLog>.fromOpaque(info).takeUnretainedValue()
                    log.note("\(activity.name) \(CFRunLoopObserverGetOrder(observer))")
                }, &context)
            log.note("\(CFRunLoopObserverDoesRepeat(observer))")
            log.note("\(CFRunLoopObserverGetActivities(observer) == activities)")
            CFRunLoopAddObserver(loop, observer, kCFRunLoopCommonModes)
            log.note("\(CFRunLoopContainsObserver(loop, observer, kCFRunLoopDefaultMode))")
            CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode) { log.note("block") }
            CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false)
            log.note("\(CFRunLoopObserverIsValid(observer))")
        }
        #expect(log.entries == ["false", "true", "true", "entry 5", "block", "false"])
    }

    @Test func `TM-19 TM-28 CFRunLoopTimerSetNextFireDate brings a parked timer nearer`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            let parked = CFRunLoopTimerCreateWithHandler(
                kCFAllocatorDefault, Date.distantFuture.timeIntervalSinceReferenceDate, 0, 0, 0
            ) { timer in log.note("fired \(CFRunLoopTimerIsValid(timer))") }
            CFRunLoopAddTimer(loop, parked, kCFRunLoopDefaultMode)
            log.note("\(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true))")
            let date = CFAbsoluteTimeGetCurrent() - 1
            CFRunLoopTimerSetNextFireDate(parked, date)
            log.note("\(abs(CFRunLoopTimerGetNextFireDate(parked) - date) < 0.001)")
            log.note("\(abs(CFRunLoopGetNextTimerFireDate(loop, kCFRunLoopDefaultMode) - date) < 0.001)")
            CFRunLoopRun()
            log.note(
                "\(CFRunLoopTimerIsValid(parked)) \(CFRunLoopGetNextTimerFireDate(loop, kCFRunLoopDefaultMode))"
            )
        }
        #expect(log.entries == ["timedOut", "true", "true", "fired true", "false 0.0"])
    }

    @Test func `TM-7 TM-26 TM-27 a loop timer repeats by its interval, with context and tolerance`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            var context = CFRunLoopTimerContext(info: Unmanaged.passUnretained(log).toOpaque())
            let timer = CFRunLoopTimerCreate(
                kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), 0.002, 0, 0,
                { timer, info in
                    guard let info else { return }
                    let log = Unmanaged<EventLog>.fromOpaque(info).takeUnretainedValue()
                    log.note("tick")
                    if log.count(of: "tick") == 3 { CFRunLoopTimerInvalidate(timer) }
                }, &context)
            CFRunLoopTimerSetTolerance(timer, 60)
            log.note("\(CFRunLoopTimerGetTolerance(timer)) \(CFRunLoopTimerGetInterval(timer))")
            log.note("\(CFRunLoopTimerDoesRepeat(timer)) \(CFRunLoopTimerGetOrder(timer))")
            CFRunLoopAddTimer(loop, timer, kCFRunLoopCommonModes)
            log.note("\(CFRunLoopContainsTimer(loop, timer, kCFRunLoopCommonModes))")
            CFRunLoopRun()
            let once = CFRunLoopTimerCreateWithHandler(
                kCFAllocatorDefault, CFAbsoluteTimeGetCurrent(), -1, 0, 0
            ) { _ in log.note("once") }
            log.note("\(CFRunLoopTimerDoesRepeat(once))")
            CFRunLoopAddTimer(loop, once, kCFRunLoopDefaultMode)
            CFRunLoopRun()
        }
        #expect(
            log.entries == ["0.001 0.002", "true 0", "true", "tick", "tick", "tick", "false", "once"])
    }

    @Test func `RL-61 CFRunLoopPerformBlock does not wake the loop, CFRunLoopWakeUp does`() throws {
        let log = EventLog()
        let port = Port()
        let thread = LoopThread { _ in
            NSRunLoop.current.add(port, forMode: NSDefaultRunLoopMode)
            CFRunLoopRun()
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        for number in 1...3 {
            CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode) { log.note("\(number)") }
        }
        #expect(CFRunLoopIsWaiting(loop))
        #expect(log.entries == [])
        CFRunLoopWakeUp(loop)
        try waitFor("the blocks") { log.entries == ["1", "2", "3"] ? () : nil }
        CFRunLoopStop(loop)
        try thread.value()
    }

    @Test func `RL-27 CFRunLoopRunInMode says how it ended, in Core Foundation's numbers`() throws {
        let results = try onLoopThread { _ -> [CFRunLoopRunResult] in
            let loop = CFRunLoopGetCurrent()
            var results = [CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false)]
            let port = Port()
            NSRunLoop.current.add(port, forMode: NSDefaultRunLoopMode)
            CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode) { CFRunLoopStop(CFRunLoopGetCurrent()) }
            results.append(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false))
            results.append(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false))
            var context = CFRunLoopSourceContext(perform: { _ in })
            let source = CFRunLoopSourceCreate(kCFAllocatorDefault, 0, &context)
            CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode)
            CFRunLoopSourceSignal(source)
            results.append(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, true))
            CFRunLoopSourceInvalidate(source)
            port.invalidate()
            return results
        }
        #expect(results == [.finished, .stopped, .timedOut, .handledSource])
        #expect(results.map(\.rawValue) == [1, 2, 3, 4])
    }

    @Test
    func `RL-60 CFRunLoopPerformBlock takes its mode as a string, as an object and in an array`() throws {
        let log = EventLog()
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            CFRunLoopPerformBlock(loop, CFRunLoopMode.defaultMode.rawValue) { log.note("string") }
            CFRunLoopPerformBlock(loop, CFRunLoopMode.commonModes.rawValue as CFTypeRef) {
                log.note("object")
            }
            CFRunLoopPerformBlock(loop, ["mine", CFRunLoopMode.defaultMode.rawValue] as CFArray) {
                log.note("array")
            }
            CFRunLoopRunInMode(.defaultMode, 0, false)
        }
        #expect(log.entries == ["string", "object", "array"])
    }

    @Test func `RL-10 RL-11 RL-21 Core Foundation's functions list, name and add modes`() throws {
        let log = EventLog()
        let mine = CFRunLoopMode("mine")
        try onLoopThread { _ in
            let loop = CFRunLoopGetCurrent()
            let modes = CFRunLoopCopyAllModes(loop) as! [String]
            log.note("\(CFRunLoopCopyCurrentMode(loop) == nil) \(modes.contains("mine"))")
            CFRunLoopPerformBlock(loop, kCFRunLoopCommonModes) {
                log.note("\(CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()) == mine)")
            }
            CFRunLoopAddCommonMode(loop, mine)
            log.note("\((CFRunLoopCopyAllModes(loop) as! [String]).contains("mine"))")
            CFRunLoopRunInMode(mine, 0, false)
            log.note("\(CFRunLoopGetMain() === loop)")
        }
        #expect(log.entries == ["true false", "true", "true", "false"])
    }
}

import Rondo
import Synchronization

/// The number of seconds that the wall clock was set ahead. The machine's clock is left alone: the program's
/// own `clock_gettime` takes precedence over the C library's for everything that is linked into it. Rondo is,
/// Foundation is not.
private let wallClockIsAhead = Atomic<Int>(0)

@_cdecl("clock_gettime")
func setWallClock(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>) -> Int32 {
    let result = realClock(clock, time)
    if clock == CLOCK_REALTIME { time.pointee.tv_sec += wallClockIsAhead.load(ordering: .relaxed) }
    return result
}

private typealias ClockFunction = @convention(c) (clockid_t, UnsafeMutablePointer<timespec>) -> Int32

private let realClock: ClockFunction = {
    // RTLD_NEXT, which is a macro: the next `clock_gettime` after this program's.
    guard let found = dlsym(UnsafeMutableRawPointer(bitPattern: -1), "clock_gettime") else { abort() }
    return unsafeBitCast(found, to: ClockFunction.self)
}()

func wallClockIsSet() {
    if isSanitized { return print("not played: under a sanitizer the clock cannot be set") }
    let loop = RunLoop.main
    let hour = 3600
    for step in [hour, -hour] {
        let log = Log()
        let mode = RunLoop.Mode("set by \(step)")
        // The date by the clock as Rondo sees it.
        let date = Timer(timeInterval: 0.1, repeats: false) { _ in }.fireDate
        let begin = ContinuousClock.now
        let repeating = Timer(timeInterval: 0.05, repeats: true) { timer in
            log.note("repeating")
            if log.entries.count(where: { $0 == "repeating" }) == 3 { timer.invalidate() }
        }
        loop.add(repeating, forMode: mode)
        loop.add(Timer(fire: date, interval: 0, repeats: false) { _ in log.note("date") }, forMode: mode)
        let unasked = Timer(timeInterval: 0.1, repeats: false) { _ in log.note("unasked") }
        loop.add(unasked, forMode: mode)
        wallClockIsAhead.add(step, ordering: .relaxed)
        let told = unasked.fireDate.timeIntervalSince(Date())
        expect(
            abs(told - Double(wallClockIsAhead.load(ordering: .relaxed))) < 60,
            "the date is that of the clock at the time of the first call: \(told)")
        let set = Timer(timeInterval: 0, repeats: false) { _ in }.fireDate.timeIntervalSince(Date())
        expect(
            abs(set - Double(wallClockIsAhead.load(ordering: .relaxed))) < 60, "Rondo's clock was set: \(set)"
        )
        let result = loop.run(in: mode, for: 60, returnAfterSourceHandled: false)
        let took = ContinuousClock.now - begin
        expect(result == .finished, "all have fired: \(result) \(log.entries)")
        expect(
            log.entries.sorted() == ["date", "repeating", "repeating", "repeating", "unasked"],
            "\(log.entries)")
        expect(took >= .milliseconds(149), "none was early: \(took)")
        expect(log.entries.first == "repeating", "the date did not come near: \(log.entries)")
    }
}

/// True if the program was linked with a sanitizer, whose own `clock_gettime` takes precedence over every
/// other.
private var isSanitized: Bool {
    guard let program = try? Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe"), options: .alwaysMapped)
    else { return false }
    // The text is composed here, because otherwise the program would find it in itself.
    return ["tsan", "asan"].contains { name in
        program.range(of: Data(["", "", name, "init"].joined(separator: "_").utf8)) != nil
    }
}

import Rondo
import RondoTestSupport
import Testing

/// Rules of the bridges between Rondo's run loop and Foundation's. Each is played by `RondoBridgeProbe`, a program that has the
/// main thread for itself.
@Suite(.timeLimit(.minutes(5))) struct BridgeTests {
    private static func play(_ scenario: String) throws {
        try BuiltFiles.play(scenario, of: "RondoBridgeProbe")
    }

    // MARK: A

    @Test func `BR-1 a mode of the main loop is served while Foundation's loop runs`() throws {
        try Self.play("BR-1")
    }

    @Test func `BR-2 nothing is polled for a guest, and an idle program sleeps`() throws {
        try Self.play("BR-2")
    }

    @Test func `BR-3 a turn leaves the main queue to Foundation's loop, and loses none of its blocks`() throws
    {
        try Self.play("BR-3")
    }

    @Test func `BR-4 in callbacks of a guest its mode runs, and each turn has its entry and exit`() throws {
        try Self.play("BR-4")
    }

    @Test func `BR-1 BR-16 a loop with a guest mode can run by itself`() throws {
        try Self.play("guest-runs")
    }

    @Test func `BR-1 a mode that becomes a guest in a run of its loop is served when that run has ended`()
        throws
    {
        try Self.play("guest-in-run")
    }

    // MARK: B

    @Test func `BR-5 Foundation's loop runs in the sleep of Rondo's`() throws { try Self.play("BR-5") }

    @Test func `BR-6 an event of Rondo's loop ends the borrowed sleep`() throws { try Self.play("BR-6") }

    @Test func `BR-7 a callback of Foundation's that changes Rondo's loop ends the sleep`() throws {
        try Self.play("BR-7")
    }

    @Test func `BR-8 a main queue drained in the sleep is a handled source, and timers are none`() throws {
        try Self.play("BR-8")
    }

    @Test func `BR-9 in tracking, and inside a block of the main queue, Foundation's loop stands still`()
        throws
    {
        try Self.play("BR-9")
    }

    @Test func `BR-10 a descriptor that stays ready makes no blocks of the main queue`() throws {
        try Self.play("BR-10")
    }

    @Test func `BR-5 BR-6 runs of either loop in callbacks inside a borrowed sleep lose no event`() throws {
        try Self.play("sleep-nested")
    }

    @Test func `BR-5 the bridge can end in a callback, and a busy loop serves Foundation's now and then`()
        throws
    {
        try Self.play("sleep-off")
    }

    // MARK: C

    @Test func `BR-11 Foundation's loop is polled in the given modes, on any thread`() throws {
        try Self.play("BR-11")
    }

    @Test
    func `BR-12 events of the thread itself are on time, and those of other threads wait for the next poll`()
        throws
    {
        try Self.play("BR-12")
    }

    @Test func `BR-13 BR-15 all kinds have a turn in a poll, observers where the mode is not empty`() throws {
        try Self.play("BR-13")
    }

    @Test func `BR-13 three polls are made in a row`() throws { try Self.play("BR-13-three") }

    @Test func `BR-14 no poll is made inside a block of the main queue, nor in a poll`() throws {
        try Self.play("BR-14")
    }

    // MARK: All

    @Test func `BR-16 a loop that is nested in a mode without a bridge leaves the other standing still`()
        throws
    {
        try Self.play("BR-16")
    }

    @Test func `BR-17 bridges are off at first, can be ended, and are described`() throws {
        try Self.play("BR-17")
    }

    @Test func `BR-17 bridges that come and go leave no descriptor`() throws { try Self.play("leaves") }

    @Test func `BR-17 a thread has one bridge at a time`() {
        #expect {
            try Self.play("BR-17-two")
        } throws: { error in
            "\(error)".contains("the loop has a bridge to Foundation's run loop already")
        }
    }

    @Test func `BR-17 polls are announced in the log once, with their cost`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.core", from: .notice)
            for _ in 0..<2 {
                try onLoopThread { $0.servesFoundation(in: [.default], atLeastEvery: 0.02) }
            }
            let told = LogCatcher.log.entries
            precondition(told.count == 1 && told[0].contains("wakes 50 times a second"), "\(told)")
        }
    }

    @Test(arguments: ["full-guest", "full-sleep"])
    func `BR-17 without descriptors a bridge waits for some, and the program goes on`(_ scenario: String)
        throws
    {
        try Self.play(scenario)
    }

    @Test
    func `BR-17 RL-29 a poll counts the drains of the main queue, also if descriptors were short before`()
        throws
    {
        try Self.play("full-polls")
    }

    @Test func `BR-18 trap 7 without a bridge a Foundation timer waits in vain, which Rondo cannot see`()
        throws
    {
        try Self.play("BR-18")
    }
}

// XCTest runs its methods on the main thread, and waits in Foundation's main loop.

import Logging
import Rondo
import RondoMutex
import RondoXCTest
import XCTest

import class Rondo.RunLoop
import class Rondo.Timer

/// A value that callbacks and a test share.
private final class Cell<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func withLock<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

/// Rules XT-1 to XT-6, trap 6.
final class WaitTests: RondoTestCase {
    func test_XT_1_trap_6_wait_serves_the_main_loop() {
        let done = expectation(description: "a timer of Rondo's")
        RunLoop.main.add(Timer(timeInterval: 0.01, repeats: false) { _ in done.fulfill() }, forMode: .default)
        wait(for: [done], timeout: 30)
    }

    func test_XT_1_waitForExpectations_serves_the_main_loop() {
        let done = expectation(description: "a block of Rondo's")
        Thread.detachNewThread { RunLoop.main.perform { done.fulfill() } }
        // XCTest runs tests on the main thread.
        nonisolated(unsafe) let test = self
        MainActor.assumeIsolated { test.waitForExpectations(timeout: 30) { error in XCTAssertNil(error) } }
    }

    func test_XT_1_an_async_method_is_served() async {
        let thread = await withCheckedContinuation { continuation in
            RunLoop.main.perform { continuation.resume(returning: Thread.isMainThread) }
        }
        XCTAssertTrue(thread)
    }

    func test_XT_1_trap_6_without_install_a_wait_is_in_vain() {
        RunLoop.main.endFoundationBridge()
        defer { RondoXCTest.install() }
        let done = XCTestExpectation(description: "a timer of Rondo's")
        let timer = Timer(timeInterval: 0.01, repeats: false) { _ in done.fulfill() }
        RunLoop.main.add(timer, forMode: .default)
        XCTAssertEqual(XCTWaiter.wait(for: [done], timeout: 0.3), .timedOut)
        timer.invalidate()
    }

    func test_XT_1_without_install_the_first_object_that_waits_in_vain_is_named() {
        LoggingSystem.bootstrap { Catcher(label: $0) }
        RunLoop.main.endFoundationBridge()
        RunLoop.unservedWarningDelay = 0.05
        defer {
            RunLoop.unservedWarningDelay = 5
            RondoXCTest.install()
        }
        let timer = Timer(timeInterval: 0, repeats: true) { _ in }
        timer.label = "in vain"
        RunLoop.main.add(timer, forMode: .default)
        for _ in 0..<300 where Catcher.told.withLock({ $0.isEmpty }) {
            _ = XCTWaiter.wait(for: [XCTestExpectation()], timeout: 0.1)
        }
        let told = Catcher.told.withLock { $0 }
        XCTAssertTrue(told.first?.contains("1 timer (in vain)") ?? false, "\(told)")
        timer.invalidate()
    }

    func test_XT_2_both_loops_are_served() {
        let isReady = Cell(false)
        let own = expectation(description: "Rondo's")
        let predicate = expectation(
            for: NSPredicate { _, _ in isReady.withLock { $0 } }, evaluatedWith: nil)
        let foreign = expectation(description: "Foundation's")
        RunLoop.main.add(
            Timer(timeInterval: 0.02, repeats: false) { _ in
                isReady.withLock { $0 = true }
                own.fulfill()
            }, forMode: .default)
        _ = Foundation.Timer.scheduledTimer(withTimeInterval: 0.02, repeats: false) { _ in foreign.fulfill() }
        wait(for: [own, predicate, foreign], timeout: 30)
    }

    func test_XT_3_a_fulfilment_ends_the_wait() {
        // A hundred waits of XCTest's 0.1 s would take ten seconds.
        let began = ContinuousClock.now
        for _ in 0..<100 {
            let done = expectation(description: "at once")
            RunLoop.main.perform { done.fulfill() }
            wait(for: [done], timeout: 30)
        }
        XCTAssertLessThan(ContinuousClock.now - began, .seconds(9))
    }

    func test_XT_4_run_functions_work_as_anywhere() {
        let calls = Cell([String]())
        RunLoop.main.add(
            Timer(timeInterval: 0.01, repeats: false) { _ in
                calls.withLock { $0.append("timer") }
                DispatchQueue.main.async {
                    calls.withLock { $0.append("queue") }
                    RunLoop.main.stop()
                }
            }, forMode: .default)
        XCTAssertEqual(CFRunLoopRunInMode(.defaultMode, 30, false), .stopped)
        XCTAssertEqual(calls.withLock { $0 }, ["timer", "queue"])
        XCTAssertTrue(RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)))
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.01))
    }

    func test_XT_5_expectations_can_be_waited_for_from_Rondo() {
        let loop = RunLoop.current
        func after(_ seconds: Double, _ expectation: XCTestExpectation, in mode: RunLoop.Mode = .default) {
            loop.add(
                Timer(timeInterval: seconds, repeats: false) { _ in expectation.fulfill() }, forMode: mode)
        }
        let (one, two) = (XCTestExpectation(), XCTestExpectation())
        after(0.01, one)
        after(0.02, two)
        XCTAssertEqual(loop.run(until: [one, two], timeout: 30), .completed)
        let (first, second) = (XCTestExpectation(), XCTestExpectation())
        after(0.02, first)
        after(0.01, second)
        XCTAssertEqual(loop.run(until: [first, second], timeout: 30, enforceOrder: true), .incorrectOrder)
        let inverted = XCTestExpectation()
        inverted.isInverted = true
        after(0.01, inverted)
        XCTAssertEqual(loop.run(until: [inverted], timeout: 30), .invertedFulfillment)
        XCTAssertEqual(loop.run(until: [XCTestExpectation()], timeout: 0.05), .timedOut)
        let tracking = XCTestExpectation()
        after(0.01, tracking, in: .tracking)
        XCTAssertEqual(loop.run(until: [tracking], timeout: 30, mode: .tracking), .completed)
        // A predicate is asked on Foundation's loop.
        let isReady = Cell(false)
        let predicate = XCTNSPredicateExpectation(predicate: NSPredicate { _, _ in isReady.withLock { $0 } })
        loop.add(
            Timer(timeInterval: 0.03, repeats: false) { _ in isReady.withLock { $0 = true } },
            forMode: .default)
        XCTAssertEqual(loop.run(until: [predicate], timeout: 30), .completed)
    }

    func test_XT_5_on_any_thread() {
        let done = DispatchSemaphore(value: 0)
        let result = Cell(XCTWaiter.Result.interrupted.rawValue)
        Thread.detachNewThread {
            let expectation = XCTestExpectation()
            RunLoop.current.perform { expectation.fulfill() }
            let ended = RunLoop.current.run(until: [expectation], timeout: 30).rawValue
            result.withLock { $0 = ended }
            done.signal()
        }
        XCTAssertEqual(done.wait(timeout: .now() + 30), .success)
        XCTAssertEqual(result.withLock { $0 }, XCTWaiter.Result.completed.rawValue)
    }

    func test_XT_12_a_wait_that_times_out_says_why() {
        let inTracking = Timer(timeInterval: 0, repeats: true) { _ in }
        inTracking.label = "elsewhere"
        RunLoop.main.add(inTracking, forMode: .tracking)
        defer { inTracking.invalidate() }
        // A test case in a run of its own, whose failure is none of this one's.
        let hangs = HangingCase(name: "hangs") { test in
            test.wait(for: [test.expectation(description: "never")], timeout: 0.05)
        }
        let output = standardErrorWhile { hangs.invokeTest() }
        XCTAssertEqual(HangingCase.failures.withLock { $0 }.count, 1)
        XCTAssertTrue(output.contains("timer “elsewhere”"), output)
        XCTAssertTrue(output.contains("The run loop of the main thread"), output)
    }

    private func standardErrorWhile(_ body: () -> Void) -> String {
        let file = tmpfile()
        let saved = dup(STDERR_FILENO)
        dup2(fileno(file), STDERR_FILENO)
        body()
        dup2(saved, STDERR_FILENO)
        close(saved)
        rewind(file)
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        fclose(file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    func test_XT_6_names_are_not_ambiguous() {
        XCTAssertEqual(String(reflecting: RondoTestCase.self), "RondoXCTest.RondoTestCase")
        XCTAssertEqual(String(reflecting: RunLoop.self), "RondoCore.RunLoop")
        RondoXCTest.install()
    }
}

/// Has no test methods, so that XCTest does not find it; its failures count nowhere.
private final class HangingCase: RondoTestCase {
    static let failures = Cell([String]())

    override var testRun: XCTestRun? { nil }

    override func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        HangingCase.failures.withLock { $0.append(description) }
        super.recordFailure(
            withDescription: description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}

private struct Catcher: LogHandler {
    static let told = Cell([String]())

    let label: String
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.warning

    init(label: String) { self.label = label }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        if label == "rondo.core" { Self.told.withLock { $0.append("\(event.message)") } }
    }
}

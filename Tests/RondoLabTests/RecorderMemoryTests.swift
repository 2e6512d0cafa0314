import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoTrace

/// What a recorder keeps for itself beside its events.
struct RecorderMemoryTests {
    @Test func `a recorder keeps only the events of a loop whose thread has ended`() throws {
        // An instrument of no loop: it hears of this loop alone.
        let recorder = Recorder()
        let thread = LoopThread { loop in
            for detail in [RunLoopEvent.Detail.entry, .exit(.finished), .entry] {
                recorder.runLoop(
                    loop, did: RunLoopEvent(detail: detail, began: 0, mode: .default, depth: 1, subject: nil))
            }
        }
        try thread.value()
        #expect(recorder.loopsRemembered == 1)
        recorder.lookForHeldBack()
        #expect(recorder.loopsRemembered == 0)
        #expect(recorder.soFar().records.map(\.loop) == [1, 1, 1])
    }
}

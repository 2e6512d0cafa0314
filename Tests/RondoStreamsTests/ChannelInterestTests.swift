import RondoCore
import RondoTestSupport
import Synchronization
import Testing

@testable import RondoStreams

/// What the descriptors of a channel are watched for, while its interest is suspended and afterwards.
@Suite(.leavesNothing) struct ChannelInterestTests {
    @Test func `interest that is set while it is suspended takes effect when it is resumed`() {
        let interest = ChannelInterest()
        let sources = (0..<2).map { _ in RunLoop.Source(fileDescriptor: 0, interest: []) { _, _ in } }
        interest.set(.read, of: sources[0])
        interest.set([.read, .write], of: sources[1])
        #expect(sources.map(\.interest) == [.read, [.read, .write]])
        interest.suspend()
        #expect(sources.map(\.interest) == [[], []])
        interest.set(.write, of: sources[0])
        #expect(sources.map(\.interest) == [[], []])
        interest.remove(sources[1])
        #expect(interest.resume())
        #expect(sources.map(\.interest) == [.write, []])
        #expect(!interest.resume())
    }

    @Test func `a resume beside a suspend of another thread leaves the sources as it says`() throws {
        let interest = ChannelInterest()
        // So many that two threads which do it side by side come to overlap.
        let sources = (0..<50).map { _ in RunLoop.Source(fileDescriptor: 0, interest: []) { _, _ in } }
        for source in sources { interest.set(.read, of: source) }
        let (meeting, rounds) = (Meeting(), 2_000)
        let other = LoopThread { _ in
            for round in 1...rounds {
                meeting.wait(2 * round - 1)
                _ = interest.resume()
                meeting.wait(2 * round)
            }
        }
        var deaf = 0
        for round in 1...rounds {
            meeting.wait(2 * round - 1)
            interest.suspend()
            meeting.wait(2 * round)
            // If it is not suspended, its sources are watched.
            _ = interest.resume()
            for source in sources where source.interest != .read {
                deaf += 1
                source.interest = .read
            }
        }
        try other.value()
        #expect(deaf == 0)
    }

    /// A place where two threads meet, again and again.
    private final class Meeting: Sendable {
        private let arrivals = Atomic(0)

        /// Returns when both have come so many times.
        func wait(_ times: Int) {
            arrivals.add(1, ordering: .sequentiallyConsistent)
            var looks = 0
            while arrivals.load(ordering: .sequentiallyConsistent) < 2 * times {
                looks += 1
                if looks > 1_000 { sched_yield() }
            }
        }
    }

    /// The channel has another owner by then, which knows nothing of it.
    @Test func `an event that a gate refuses after its removal silences nothing`() {
        let interest = ChannelInterest()
        let source = RunLoop.Source(fileDescriptor: 0, interest: []) { _, _ in }
        let gate = TestGate { _ in }
        interest.gate = gate
        interest.set(.read, of: source)
        interest.suspend(if: gate)
        #expect(source.interest == [])
        #expect(interest.removeGate())
        #expect(source.interest == .read)
        interest.suspend(if: gate)
        #expect(source.interest == .read)
    }
}

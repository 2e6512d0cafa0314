import RondoCore
import RondoTestSupport
import Synchronization
import Testing

@testable import RondoStreams

/// Tests for which events the descriptors of a channel are watched while it is suspended, and afterwards.
@Suite(.leavesNothing) struct ChannelRegistrationTests {
    @Test func `interest that is set while it is suspended takes effect when it is resumed`() {
        let registration = ChannelRegistration()
        let wanted: [RunLoop.Source.Interest] = [.read, [.read, .write]]
        let sources = wanted.map { registration.makeSource(0, interest: $0) }
        #expect(sources.map(\.interest) == [.read, [.read, .write]])
        registration.suspend()
        #expect(sources.map(\.interest) == [[], []])
        registration.setInterest(.write, of: sources[0])
        #expect(sources.map(\.interest) == [[], []])
        registration.remove(sources[1])
        let late = registration.makeSource(0, interest: .read)
        #expect(late.interest == [])
        registration.resume()
        #expect((sources + [late]).map(\.interest) == [.write, [], .read])
        // It is not suspended any more, so nothing is resumed.
        sources[0].interest = []
        registration.resume()
        #expect(sources[0].interest == [])
        for source in [sources[0], late] { registration.remove(source) }
    }

    @Test func `a source that watches no socket of the channel is not suspended`() {
        let registration = ChannelRegistration()
        let source = RunLoop.Source(fileDescriptor: 0, interest: .read) { _, _ in }
        registration.add(source)
        registration.suspend()
        #expect(source.interest == .read)
        registration.remove(source)
    }

    @Test func `a resume beside a suspend of another thread leaves the sources as it says`() throws {
        let registration = ChannelRegistration()
        // So many that two threads which do it side by side come to overlap.
        let sources = (0..<50).map { _ in registration.makeSource(0, interest: .read) }
        let (meeting, rounds) = (Meeting(), 2_000)
        let other = LoopThread { _ in
            for round in 1...rounds {
                meeting.wait(2 * round - 1)
                registration.resume()
                meeting.wait(2 * round)
            }
        }
        var (wrong, deaf) = (0, 0)
        for round in 1...rounds {
            meeting.wait(2 * round - 1)
            registration.suspend()
            meeting.wait(2 * round)
            // A source that is made now tells which of the two was the last.
            let told = registration.makeSource(0, interest: .read)
            for source in sources where source.interest != told.interest { wrong += 1 }
            registration.remove(told)
            // If it is not suspended, its sources are watched.
            registration.resume()
            for source in sources where source.interest != .read {
                deaf += 1
                source.interest = .read
            }
        }
        try other.value()
        #expect(wrong == 0 && deaf == 0)
        for source in sources { registration.remove(source) }
    }

    /// The channel has another owner by then, which knows nothing of it.
    @Test func `an event that a gate refuses after the end of the access silences nothing`() {
        let channel = SocketChannel(.init(host: "localhost", port: 80))
        let registration = channel.registration
        let source = registration.makeSource(0, interest: .read)
        registration.beginAccess(to: channel, by: TestGate { _, _ in })
        let use = registration.use
        registration.suspend(ifUseIs: use)
        #expect(source.interest == [])
        registration.endAccess()
        #expect(source.interest == .read)
        registration.suspend(ifUseIs: use)
        #expect(source.interest == .read)
        registration.remove(source)
    }

    /// As if another thread had ended it between the callback's beginning and its admission.
    @Test(arguments: [false, true])
    func `a callback that is admitted after the end of the access does not reach the channel`(
        hasEnded: Bool
    ) throws {
        let isReached = try onLoopThread { loop -> Bool in
            let channel = SocketChannel(.init(host: "localhost", port: 80))
            let (registration, queue) = (channel.registration, SharedQueue.join(loop, .default))
            var isReached = false
            channel.handler = { _ in isReached = true }
            let gate = TestGate { event, _ in
                if hasEnded { registration.endAccess() }
                event()
            }
            registration.beginAccess(to: channel, by: gate)
            registration.add(queue)
            channel.open()
            #expect(registration.serve(by: queue))
            channel.close()
            return isReached
        }
        #expect(isReached != hasEnded)
    }

    /// As an idle connection has none, whose pass was requested for its last owner.
    @Test(arguments: [false, true])
    func `RL-37 a pass that finds no gate has called no program`(hasGate: Bool) throws {
        let counts = try onLoopThread { loop -> [Int] in
            let channel = SocketChannel(.init(host: "localhost", port: 80))
            let (registration, queue) = (channel.registration, SharedQueue.join(loop, .default))
            var entries = 0
            let gate = TestGate { _, _ in entries += 1 }
            registration.add(queue)
            if hasGate { registration.beginAccess(to: channel, by: gate) }
            registration.askForPass()
            let hasCalled = registration.serve(by: queue)
            // Once for one request.
            #expect(!registration.serve(by: queue))
            channel.close()
            return [entries, hasCalled ? 1 : 0]
        }
        #expect(counts == (hasGate ? [1, 1] : [0, 0]))
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

    @Test func `ST-18 a timer of the opening goes with the channel into another loop`() throws {
        let other = RunLoop.loader
        let found = try onLoopThread { loop -> [Bool] in
            let registration = ChannelRegistration()
            registration.add(SharedQueue.join(loop, .default))
            let timers = registration.startTimers(after: 1_000)
            registration.add(SharedQueue.join(other, .default))
            let before = timers.map { loop.contains($0, forMode: .default) }
            registration.remove(LoopMode(loop: loop, mode: .default))
            let after = timers.map { other.contains($0, forMode: .default) }
            registration.stop(timers)
            registration.end()
            return before + after
        }
        #expect(found == [true, true])
    }
}

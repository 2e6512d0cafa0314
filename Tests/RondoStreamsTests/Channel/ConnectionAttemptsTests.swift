import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Attempts to connect, whose sources and timers are in no loop.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ConnectionAttemptsTests {
    private final class Sources: ChannelSources {
        private(set) var interests: [RunLoop.Source.Interest] = []
        private(set) var timers = 0

        var askForPass: @Sendable () -> Void { {} }
        var askForPassFirst: @Sendable () -> Void { {} }

        func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source {
            interests.append(interest)
            return RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: interest) { _, _ in }
        }

        func add(_ source: RunLoop.Source) {}
        func setInterest(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {}
        func remove(_ source: RunLoop.Source) { source.invalidate() }

        func startTimers(after seconds: Double) -> [Timer] {
            timers += 1
            return []
        }

        func stop(_ timers: [Timer]) {}
    }

    @Test func `a connection within this machine stands at once, without the kernel's word or a timer`()
        throws
    {
        let (listener, other) = (try TestListener(), try TestListener())
        let sources = Sources()
        let attempts = ConnectionAttempts(sources)
        let progress = attempts.start([listener.address, other.address])
        guard case .connectedAtOnce(let transport, let address) = progress else {
            attempts.cancel()
            Issue.record("\(String(describing: progress))")
            return
        }
        #expect(address == listener.address)
        #expect(sources.interests == [[]])
        #expect(sources.timers == 0)
        sources.remove(transport.source)
        transport.close(closesDescriptor: true)
    }

    @Test func `an address that does not answer is waited for, and a timer begins the next attempt`() throws {
        let silent = try SilentListener()
        defer { withExtendedLifetime(silent) {} }
        let other = try TestListener()
        let sources = Sources()
        let attempts = ConnectionAttempts(sources)
        guard case .connecting(silent.address) = attempts.start([silent.address, other.address]) else {
            Issue.record("the attempt is over")
            return
        }
        #expect(sources.interests == [.write])
        #expect(sources.timers == 1)
        attempts.cancel()
    }

    @Test func `where no descriptor is left a new connection gets that of one that lingers`() async {
        await #expect(processExitsWith: .success) {
            let (server, port) = try PythonServer.start(.deaf)
            defer { server.terminate() }
            let listener = try TestListener()
            let findings = try onStreamThread { _ in
                // The loader's loop, which waits for the peer's end, needs descriptors of its own.
                let turn = DispatchSemaphore(value: 0)
                RunLoop.loader.perform { turn.signal() }
                turn.wait()
                let (input, output) = securedStreams(port)
                input.open()
                output.open()
                let isWritten = output.writeAll([1])
                input.close()
                output.close()
                let before = LingeringClose.count
                takeAllDescriptors()
                let progress = ConnectionAttempts(Sources()).start([listener.address])
                guard case .connectedAtOnce = progress else { return ["\(String(describing: progress))"] }
                return ["\(isWritten)", "\(before)", "\(LingeringClose.count)"]
            }
            precondition(findings == ["true", "1", "0"], "\(findings)")
        }
    }
}

import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

/// CFHost over a resolver that a test holds.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct HostLookUpTests {
    private static func resolver(heldBy latch: Latch, begun: Latch? = nil) -> Resolver {
        Resolver(idleTime: .milliseconds(1)) { _, port in
            begun?.open()
            latch.waitOrRecord()
            return .success([.loopback(port: port)])
        }
    }

    @Test func `CS-19 a thread that waits for a look-up goes on when another one gives that up`() throws {
        let (latch, begun) = (Latch(), Latch())
        let host = CFHost(name: "held.example", resolver: Self.resolver(heldBy: latch, begun: begun))
        let waiting = LoopThread { _ in host.start(.addresses) }
        try begun.wait()
        // A host has one look-up at a time.
        #expect(host.start(.names).error == EALREADY)
        host.cancel(.addresses)
        #expect(try waiting.value().error == ECANCELED)
        #expect(host.array(.addresses) == nil)
        latch.open()
        #expect(host.start(.addresses) == CFStreamError())
        #expect(host.array(.addresses)?.count == 1)
    }

    @Test
    func
        `CS-19 an answer from another thread wakes the loop, and a host without other owners lives till then`()
        throws
    {
        let latch = Latch()
        let log = EventLog()
        let thread = LoopThread { loop in
            Self.begin(heldBy: latch, in: loop, log)
            return loop.run(in: .default, for: testPatience + 5, returnAfterSourceHandled: false)
        }
        try thread.loop.waitUntilAsleep()
        latch.open()
        #expect(try thread.value() == .finished)
        #expect(log.entries == ["1 0"])
    }

    private static func begin(heldBy latch: Latch, in loop: RunLoop, _ log: EventLog) {
        let host = CFHost(name: "held.example", resolver: resolver(heldBy: latch))
        host.setClient { host, _, error in
            log.note("\(host.array(.addresses)?.count ?? 0) \(error.error)")
        }
        host.schedule(in: loop, forMode: .default)
        _ = host.start(.addresses)
    }

    @Test func `CS-19 a host that nothing holds ends its look-up`() throws {
        let latch = Latch()
        weak var weakHost: CFHost?
        do {
            let host = CFHost(name: "held.example", resolver: Self.resolver(heldBy: latch))
            weakHost = host
            try onLoopThread { loop in
                host.setClient { _, _, _ in }
                host.schedule(in: loop, forMode: .default)
                _ = host.start(.addresses)
                host.unschedule(from: loop, forMode: .default)
            }
        }
        #expect(weakHost == nil)
        latch.open()
    }

    @Test func `CS-19 a host that has left its modes knows its result, and can look up again`() throws {
        let latch = Latch()
        let host = CFHost(name: "held.example", resolver: Self.resolver(heldBy: latch))
        let log = EventLog()
        try onLoopThread { loop in
            host.setClient { _, _, _ in log.note("called") }
            host.schedule(in: loop, forMode: .default)
            #expect(host.start(.addresses) == CFStreamError())
            host.unschedule(from: loop, forMode: .default)
        }
        #expect(host.start(.addresses).error == EALREADY)
        latch.open()
        try waitFor("the result") { host.array(.addresses).map { _ in } }
        #expect(host.start(.names) == CFStreamError())
        #expect(host.array(.addresses)?.count == 1)
        #expect(log.entries == [])
    }

    @Test func `CS-19 a host that leaves its modes before it is served knows the result that has come`()
        throws
    {
        let latch = Latch()
        let host = CFHost(name: "held.example", resolver: Self.resolver(heldBy: latch))
        let log = EventLog()
        let thread = LoopThread { loop in
            host.setClient { _, _, _ in log.note("called") }
            host.schedule(in: loop, forMode: .default)
            #expect(host.start(.addresses) == CFStreamError())
            latch.open()
            let signalled = Result {
                try waitFor("the result") {
                    var members: [Any] = []
                    return HeldBackEvent.all(of: loop, keeping: &members).isEmpty ? nil : ()
                }
            }
            #expect(host.array(.addresses) == nil)
            host.unschedule(from: loop, forMode: .default)
            #expect(host.array(.addresses)?.count == 1)
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .finished)
            return signalled
        }
        try thread.value().get()
        #expect(host.start(.names) == CFStreamError())
        #expect(log.entries == [])
    }

    /// Takes a host out of a mode when its source has entered another one, as another thread could do it.
    private final class Unscheduler: RunLoop.Instrument {
        private let host: CFHost
        private let loop: RunLoop

        init(_ host: CFHost, in loop: RunLoop) { (self.host, self.loop) = (host, loop) }

        func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
            guard loop === self.loop, event.kind == .add, event.mode == .default else { return }
            host.unschedule(from: loop, forMode: .tracking)
        }
    }

    @Test func `CS-19 a host that leaves a mode while its look-up begins is not called there`() throws {
        let latch = Latch()
        try onLoopThread { loop in
            let host = CFHost(name: "held.example", resolver: Self.resolver(heldBy: latch))
            host.setClient { _, _, _ in }
            host.schedule(in: loop, forMode: .default)
            host.schedule(in: loop, forMode: .tracking)
            InstrumentTurn.take {
                RunLoop.instrument = Unscheduler(host, in: loop)
                defer { RunLoop.instrument = nil }
                #expect(host.start(.addresses) == CFStreamError())
            }
            #expect(loop.run(in: .tracking, for: 0, returnAfterSourceHandled: false) == .finished)
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            host.cancel(.addresses)
        }
        latch.open()
    }
}

import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// With a patience of a second; times are in milliseconds.
@Suite struct LookUpQueueTests {
    private typealias Step = LookUpQueue.Step

    private func instant(_ milliseconds: UInt64) -> DispatchTime {
        DispatchTime(uptimeNanoseconds: 1_000_000_000 + milliseconds * 1_000_000)
    }

    private func place(_ host: String) -> LookUpQueue.Place { LookUpQueue.Place(host: host, port: 80) }

    private func request(_ host: String) -> Resolver.Request {
        Resolver.Request(host: host, port: 80) { _ in }
    }

    /// A queue to which requests for these hosts were added at 0.
    private func queue(of hosts: [String]) -> (queue: LookUpQueue, calls: [LookUpQueue.Call?]) {
        var queue = LookUpQueue(patience: .seconds(1))
        let calls = hosts.map { queue.add(request($0), now: instant(0)) }
        return (queue, calls)
    }

    @Test func `each name has a thread, up to the limit, and one stands by for the others`() {
        var (queue, calls) = queue(of: ["a", "b", "a", "c", "d", "e", "f"])
        #expect(calls == [.start, .start, .enough, .start, .start, .start, .enough])
        #expect(queue.threads == 5)
        for host in ["a", "b", "c", "d"] {
            let step = queue.next(now: instant(10))
            #expect(step == .lookUp(place(host), .enough))
        }
        let last = queue.next(now: instant(20))
        #expect(last == .standBy(until: instant(1_010)))
        // The thread that has answered takes the next.
        #expect(queue.end(place("a")).count == 2)
        let next = queue.next(now: instant(30))
        #expect(next == .lookUp(place("e"), .enough))
        // There is one that stands by.
        #expect(queue.end(place("b")).count == 1)
        #expect(queue.end(place("c")).count == 1)
        let free = queue.next(now: instant(40))
        #expect(free == .lookUp(place("f"), .enough))
        let idle = queue.next(now: instant(40))
        #expect(idle == .idle)
        let call = queue.add(request("g"), now: instant(50))
        #expect(call == .wake)
    }

    @Test func `a request joins a look-up that is being made, also if all before it were cancelled`() {
        var queue = LookUpQueue(patience: .seconds(1))
        let first = request("a")
        _ = queue.add(first, now: instant(0))
        let step = queue.next(now: instant(0))
        #expect(step == .lookUp(place("a"), .enough))
        first.cancel()
        let call = queue.add(request("a"), now: instant(5_000))
        #expect(call == .enough)
        #expect(queue.end(place("a")).count == 2)
        // A later one is another look-up.
        let later = queue.add(request("a"), now: instant(6_000))
        #expect(later == .start)
    }

    @Test func `slow look-ups are not counted, up to the limit of threads`() {
        var (queue, _) = queue(of: (0..<100).map { "host\($0)" })
        for _ in 0..<4 { _ = queue.next(now: instant(0)) }
        let early = queue.next(now: instant(999))
        #expect(early == .standBy(until: instant(1_000)))
        var (now, made) = (1_000 as UInt64, 4)
        // The threads that have been started and have not asked yet, with the one that stood by.
        var asking = 1
        queue.endStandby()
        while asking > 0 {
            asking -= 1
            switch queue.next(now: instant(now)) {
            case .lookUp(_, let call):
                made += 1
                if call == .start { asking += 1 }
            case .standBy(let until):
                #expect(until == instant(now + 1_000))
                now += 1_000
                queue.endStandby()
                asking += 1
            case .idle:
                Issue.record("many wait")
            }
        }
        #expect(made == Resolver.threadLimit && queue.threads == Resolver.threadLimit)
    }

    @Test func `a thread stands by only while look-ups wait`() {
        var (queue, _) = queue(of: (0..<5).map { "host\($0)" })
        for _ in 0..<4 { _ = queue.next(now: instant(0)) }
        let step = queue.next(now: instant(0))
        #expect(step == .standBy(until: instant(1_000)))
        _ = queue.end(place("host0"))
        #expect(!queue.needsNoStandby)
        let last = queue.next(now: instant(0))
        #expect(last == .lookUp(place("host4"), .enough))
        #expect(queue.needsNoStandby)
        queue.endStandby()
        #expect(!queue.needsNoStandby)
    }

    @Test func `a look-up whose requests were all cancelled is not made`() {
        var queue = LookUpQueue(patience: .seconds(1))
        let requests = ["a", "a", "b"].map { request($0) }
        for request in requests { _ = queue.add(request, now: instant(0)) }
        requests[0].cancel()
        requests[1].cancel()
        let step = queue.next(now: instant(0))
        #expect(step == .lookUp(place("b"), .enough))
        let call = queue.add(request("a"), now: instant(0))
        #expect(call == .start)
    }

    @Test func `cancelled requests make room, and an answer too`() {
        var queue = LookUpQueue(patience: .seconds(1))
        let requests = (0..<Resolver.waitingLimit).map { request("host\($0)") }
        for request in requests { _ = queue.add(request, now: instant(0)) }
        let refused = queue.add(request("host0"), now: instant(0))
        #expect(refused == nil)
        let step = queue.next(now: instant(0))
        #expect(step == .lookUp(place("host0"), .enough))
        #expect(queue.end(place("host0")).count == 1)
        let taken = [queue.add(request("x"), now: instant(0)), queue.add(request("y"), now: instant(0))]
        #expect(taken == [.enough, nil])
        for request in requests { request.cancel() }
        let late = queue.add(request("y"), now: instant(0))
        #expect(late == .enough)
        let next = queue.next(now: instant(0))
        #expect(next == .lookUp(place("x"), .enough))
    }

    @Test func `a thread that cannot be started fails what waits only if there is no other`() {
        var queue = queue(of: ["a", "b"]).queue
        #expect(queue.noteNotStarted().isEmpty)
        #expect(queue.noteNotStarted().count == 2)
        #expect(queue.threads == 0)
        let call = queue.add(request("a"), now: instant(0))
        #expect(call == .start)
    }

    @Test func `an idle thread that a call has counted on does not end`() {
        var queue = queue(of: ["a"]).queue
        _ = queue.next(now: instant(0))
        _ = queue.end(place("a"))
        _ = queue.next(now: instant(0))
        let call = queue.add(request("b"), now: instant(0))
        #expect(call == .wake)
        let hasEnded = queue.endIdle()
        #expect(!hasEnded)
        let step = queue.next(now: instant(0))
        #expect(step == .lookUp(place("b"), .enough))
        _ = queue.end(place("b"))
        _ = queue.next(now: instant(0))
        let hasEndedLater = queue.endIdle()
        #expect(hasEndedLater && queue.threads == 0)
    }
}

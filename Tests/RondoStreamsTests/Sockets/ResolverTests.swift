import RondoCore
import RondoMutex
import RondoStreams
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ResolverTests {
    private func answer(of host: String, resolver: Resolver = .shared) async -> Resolver.Outcome {
        await withCheckedContinuation { continuation in
            resolver.resolve(host: host, port: 80) { continuation.resume(returning: $0) }
        }
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("fe80::1%lo", "[fe80::1%lo]:80"),
        ("127.1", "127.0.0.1:80"), ("0x7f000001", "127.0.0.1:80"), ("2130706433", "127.0.0.1:80"),
        ("017700000001", "127.0.0.1:80"),
    ])
    func `numbers need no look-up`(host: String, description: String) async {
        #expect(Resolver.numeric(host: host, port: 80)?.description == description)
        #expect(await answer(of: host) == .success([Resolver.numeric(host: host, port: 80)!]))
    }

    @Test(arguments: [
        "localhost", "", "1.2.3.4.5", "1e100.net", "0x7f.example", "127.0.0.1\0", "x1", "999.1.1.1",
    ])
    func `a text that is not a numeric address is not read as one`(host: String) {
        #expect(Resolver.numeric(host: host, port: 80) == nil)
    }

    @Test func `localhost is this machine`() async throws {
        let addresses = try await answer(of: "localhost").get()
        #expect(addresses.contains(.loopback(port: 80)))
        #expect(Set(addresses).count == addresses.count)
    }

    @Test func `ST-38 an unknown host is told apart`() async {
        guard case .failure(let error) = await answer(of: "nonexistent.invalid") else {
            Issue.record("nonexistent.invalid was found")
            return
        }
        // Without any name server the answer is that there was none.
        #expect(error.kind == .unknownHost || error.code == EAI_AGAIN)
        #expect(error.host == "nonexistent.invalid")
        #expect(error.description.contains("nonexistent.invalid"))
    }

    @Test(arguments: [
        "", "a\0b", "a b", String(repeating: "x", count: 64), String(repeating: "x.", count: 1_000),
    ])
    func `an impossible name is an unknown host`(host: String) async {
        guard case .failure(let error) = await answer(of: host) else {
            Issue.record("\(host) was found")
            return
        }
        #expect(error.kind == .unknownHost || error.code == EAI_AGAIN)
    }

    @Test func `the system's codes of failed look-ups become kinds and sentences`() {
        #expect(ResolveError(host: "a", code: EAI_NONAME).kind == .unknownHost)
        #expect(ResolveError(host: "a", code: -5).kind == .unknownHost)
        #expect(ResolveError(host: "a", code: EAI_AGAIN).kind == .lookupFailed)
        #expect(ResolveError(host: "a", code: EAI_FAIL).kind == .lookupFailed)
        let system = ResolveError(host: "a", code: EAI_SYSTEM, systemCode: EMFILE)
        #expect(system.kind == .lookupFailed)
        #expect(system.description.contains("EMFILE"))
        #expect(
            ResolveError(host: "a.b", code: EAI_NONAME).description
                == "no host is called “a.b”: Name or service not known. Check the spelling of the name")
    }

    @Test func `no more look-ups than the limit and no threads for long`() async {
        let gate = DispatchSemaphore(value: 0)
        let running = Mutex((now: 0, most: 0))
        // However long the machine stands still, no look-up is slow.
        let resolver = Resolver(idleTime: .milliseconds(1), patience: .seconds(600)) { _, port in
            running.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            gate.wait()
            running.withLock { $0.now -= 1 }
            return .success([.loopback(port: port)])
        }
        let answers = Mutex<[UInt16]>([])
        await withCheckedContinuation { continuation in
            for port in 1...20 as ClosedRange<UInt16> {
                resolver.resolve(host: "host", port: port) { answer in
                    let count = answers.withLock { answers in
                        answers.append((try? answer.get())?.first?.port ?? 0)
                        return answers.count
                    }
                    if count == 20 { continuation.resume() }
                }
            }
            for _ in 1...20 { gate.signal() }
        }
        #expect(answers.withLock { $0.sorted() } == Array(1...20))
        #expect(running.withLock { $0.most } <= Resolver.lookUpLimit)
        while resolver.threadCount > 0 { await Task.yield() }
        // And they start again.
        gate.signal()
        #expect(await answer(of: "again", resolver: resolver) == .success([.loopback(port: 80)]))
    }

    @Test func `a thread that was about to end still serves`() async {
        let resolver = Resolver(idleTime: .microseconds(50)) { _, port in .success([.loopback(port: port)]) }
        for _ in 1...2_000 {
            #expect(await answer(of: "host", resolver: resolver) == .success([.loopback(port: 80)]))
        }
    }

    @Test func `a cancelled look-up calls no completion`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = Resolver(idleTime: .milliseconds(1)) { _, port in
            gate.wait()
            gate.signal()
            return .success([.loopback(port: port)])
        }
        let called = Mutex(0)
        // A few are under way, the others wait.
        let requests = (1...10).map { number in
            resolver.resolve(host: "host\(number / 2)", port: 80) { _ in called.withLock { $0 += 1 } }
        }
        requests.forEach { $0.cancel() }
        gate.signal()
        while resolver.threadCount > 0 { await Task.yield() }
        #expect(called.withLock { $0 } == 0)
    }

    @Test func `requests that wait for the same are answered by one look-up`() async {
        let gate = DispatchSemaphore(value: 0)
        let lookups = Mutex<[String]>([])
        let resolver = Resolver(idleTime: .milliseconds(1)) { host, port in
            gate.wait()
            gate.signal()
            lookups.withLock { $0.append("\(host):\(port)") }
            return .success([.loopback(port: port)])
        }
        let called = Mutex<[UInt16]>([])
        // As many as may be made, so that those behind them wait.
        for number in 1...Resolver.lookUpLimit { resolver.resolve(host: "busy\(number)", port: 1) { _ in } }
        for port in [80, 80, 81, 80, 81] as [UInt16] {
            resolver.resolve(host: "host", port: port) { _ in called.withLock { $0.append(port) } }
        }
        resolver.resolve(host: "host", port: 80) { _ in called.withLock { $0.append(0) } }.cancel()
        gate.signal()
        while resolver.threadCount > 0 { await Task.yield() }
        #expect(called.withLock { $0.sorted() } == [80, 80, 80, 81, 81])
        #expect(lookups.withLock { $0.filter { $0.hasPrefix("host") }.sorted() } == ["host:80", "host:81"])
    }

    @Test func `a request for a name that is being looked up gets that answer`() async {
        let gate = DispatchSemaphore(value: 0)
        let lookups = Mutex(0)
        let resolver = Resolver(idleTime: .milliseconds(1)) { _, port in
            lookups.withLock { $0 += 1 }
            gate.wait()
            return .success([.loopback(port: port)])
        }
        let called = Mutex<[Int]>([])
        resolver.resolve(host: "host", port: 80) { _ in called.withLock { $0.append(0) } }.cancel()
        resolver.resolve(host: "host", port: 80) { _ in called.withLock { $0.append(1) } }
        while lookups.withLock({ $0 }) == 0 { await Task.yield() }
        for number in 2...4 {
            resolver.resolve(host: "host", port: 80) { _ in called.withLock { $0.append(number) } }
        }
        gate.signal()
        while resolver.threadCount > 0 { await Task.yield() }
        #expect(called.withLock { $0 } == [1, 2, 3, 4])
        #expect(lookups.withLock { $0 } == 1)
    }

    @Test func `names whose servers do not answer do not hold up the others`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = Resolver(idleTime: .milliseconds(1), patience: .milliseconds(10)) { host, port in
            if host.hasPrefix("dead") {
                gate.wait()
                gate.signal()
            }
            return .success([.loopback(port: port)])
        }
        for number in 1...(2 * Resolver.lookUpLimit) {
            resolver.resolve(host: "dead\(number)", port: 80) { _ in }
        }
        for _ in 1...3 {
            #expect(await answer(of: "alive", resolver: resolver) == .success([.loopback(port: 80)]))
        }
        gate.signal()
        while resolver.threadCount > 0 { await Task.yield() }
    }

    @Test func `too many look-ups are refused and cancelled ones do not count`() async {
        let gate = DispatchSemaphore(value: 0)
        let resolver = Resolver(idleTime: .milliseconds(1)) { _, port in
            gate.wait()
            gate.signal()
            return .success([.loopback(port: port)])
        }
        // The threads take some of them away, so there are a few more.
        let requests = (1...(Resolver.waitingLimit + Resolver.lookUpLimit)).map { number in
            resolver.resolve(host: "host\(number)", port: 80) { _ in }
        }
        let first = await withCheckedContinuation { continuation in
            let once = Mutex(false)
            for _ in 0...Resolver.lookUpLimit {
                resolver.resolve(host: "late", port: 80) { answer in
                    if case .failure = answer,
                        !once.withLock({ old in
                            defer { old = true }; return old
                        })
                    {
                        continuation.resume(returning: answer)
                    }
                }
            }
        }
        #expect(first == .failure(.tooManyLookups(host: "late")))
        requests.forEach { $0.cancel() }
        gate.signal()
        #expect(await answer(of: "later", resolver: resolver) == .success([.loopback(port: 80)]))
        while resolver.threadCount > 0 { await Task.yield() }
    }

    @Test func `RFC 6761 6_3 localhost and the names below it are this machine`() {
        for host in ["localhost", "LocalHost", "localhost.", "a.localhost", "a.b.localhost."] {
            let addresses = Resolver.loopback(host: host, port: 80) ?? []
            #expect(addresses.map(\.description) == ["127.0.0.1:80", "[::1]:80"])
        }
        for host in ["", ".", ".localhost", "localhost.example", "notlocalhost", "localhost..", "127.0.0.1"] {
            #expect(Resolver.loopback(host: host, port: 80) == nil)
        }
    }
}

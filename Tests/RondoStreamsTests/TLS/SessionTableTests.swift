import RondoStreams
import Testing

@Suite struct SessionTableTests {
    struct Session: ResumableSession, Equatable {
        let number: Int
        var isForOneUse = true
        var isUsable = true
    }

    @Test func `the session table gives the newest TLS session first, and each only once`() {
        var table = SessionTable<String, Session>(hostLimit: 2, sessionLimit: 2)
        for number in 1...3 {
            let dropped = table.add(Session(number: number), for: "a")
            #expect(dropped.map(\.number) == (number == 3 ? [1] : []))
        }
        #expect(table.take(for: "b", where: \.isUsable) == nil)
        #expect(table.take(for: "a", where: \.isUsable)?.number == 3)
        #expect(table.take(for: "a", where: \.isUsable)?.number == 2)
        #expect(table.take(for: "a", where: \.isUsable) == nil)
        #expect(table.count == 0)
    }

    @Test func `a session for many uses stays`() {
        var table = SessionTable<String, Session>(hostLimit: 2, sessionLimit: 2)
        _ = table.add(Session(number: 1, isForOneUse: false), for: "a")
        for _ in 1...3 { #expect(table.take(for: "a", where: \.isUsable)?.number == 1) }
    }

    @Test func `a session that cannot be used is released`() {
        var table = SessionTable<String, Session>(hostLimit: 2, sessionLimit: 4)
        _ = table.add(Session(number: 1), for: "a")
        _ = table.add(Session(number: 2, isUsable: false), for: "a")
        #expect(table.take(for: "a", where: \.isUsable)?.number == 1)
        _ = table.add(Session(number: 3, isUsable: false), for: "a")
        #expect(table.take(for: "a", where: \.isUsable) == nil)
        #expect(table.count == 0)
    }

    @Test func `beyond the limit the host that was used longest ago goes`() {
        var table = SessionTable<Int, Session>(hostLimit: 2, sessionLimit: 2)
        for host in 1...2 { _ = table.add(Session(number: host, isForOneUse: false), for: host) }
        _ = table.take(for: 1, where: \.isUsable)
        #expect(table.add(Session(number: 3), for: 3).map(\.number) == [2])
        for host in 4...1_000 { _ = table.add(Session(number: host), for: host) }
        #expect(table.count == 2)
    }
}

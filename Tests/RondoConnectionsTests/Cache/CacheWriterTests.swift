import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoConnections

/// The order in which responses are stored off the loops.
@Suite(.timeLimit(.minutes(5))) struct CacheWriterTests {
    private final class Token: Sendable {}

    /// `@unchecked Sendable`: set before other threads have it, and a weak reference is read from any thread.
    private final class Gone: @unchecked Sendable {
        private(set) weak var token: Token?

        init(_ token: Token) { self.token = token }
    }

    @Test func `waiting closures are called in order, and each is released before the next`() throws {
        let writer = CacheWriter()
        let (begin, end) = (Latch(), Latch())
        let findings = Mutex<[String]>([])
        #expect(!writer.isBusy)
        writer.add { begin.waitOrRecord() }
        #expect(writer.isBusy)
        var before: Gone?
        for number in 0..<4 {
            let token = Token()
            writer.add { [before] in
                findings.withLock { $0.append("\(number) \(before?.token == nil)") }
                withExtendedLifetime(token) {}
                // One more while the others wait, and one when all are done.
                if number == 1 { writer.add { findings.withLock { $0.append("later") } } }
                if number == 3 { writer.add { end.open() } }
            }
            before = Gone(token)
        }
        begin.open()
        try end.wait()
        #expect(findings.withLock { $0 } == ["0 true", "1 true", "2 true", "3 true", "later"])
        try waitFor("its rest") { writer.isBusy ? nil : () }
    }
}

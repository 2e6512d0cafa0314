import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// A task holds only a limited number of bytes for a slow delegate.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct MemoryTests {
    /// A server that sends without end, and counts the bytes that the kernel has taken.
    private final class EndlessServer: Sendable {
        let server: TestServer
        private let sent: Box<Int>
        private let peer: Box<TestPeer?>

        init() throws {
            let (sent, held) = (Box(0), Box<TestPeer?>(nil))
            server = try TestServer { peer in
                _ = try peer.readRequest()
                held.value = peer
                try peer.send("HTTP/1.1 200 OK\r\n\r\n")
                let piece = [UInt8](repeating: 120, count: 65_536)
                while true {
                    try peer.send(piece)
                    sent.value += piece.count
                }
            }
            (self.sent, peer) = (sent, held)
        }

        var url: URL { server.url() }

        /// Waits until the server is held back: the kernel takes nothing more of it, and a whole pass of the loop that could
        /// read has changed nothing about that.
        ///
        /// - Parameter loop: Nil: it does not run.
        /// - Returns: Bytes that were sent.
        func waitUntilHeld(by loop: RunLoop?) throws -> Int {
            let cannotSend = { self.peer.value?.cannotSend ?? false }
            return try waitFor("the server to be held back") {
                let before = self.sent.value
                guard before > 0, cannotSend() else { return nil }
                if let loop {
                    let passed = Latch()
                    loop.perform { loop.perform { passed.open() } }
                    guard (try? passed.wait()) != nil, (try? loop.waitUntilAsleep()) != nil else {
                        return nil
                    }
                }
                return cannotSend() && self.sent.value == before ? before : nil
            }
        }
    }

    /// Of the kernel's buffers on both sides; the rest is Rondo's limit.
    private static let most = 32 << 20

    @Test func `US-87 US-20 a delegate that blocks its queue holds the server back`() throws {
        let server = try EndlessServer()
        let (mayLeave, taken) = (Latch(), Box(0))
        let notes = Notes { call, task in
            guard call == "data" else { return }
            taken.value += 1
            do { try mayLeave.wait() } catch { Issue.record(error) }
        }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let before = try memoryInUse()
        session.dataTask(with: server.url).resume()
        let bytes = try server.waitUntilHeld(by: .loader)
        #expect(bytes < Self.most)
        #expect(try memoryInUse() - before < Self.most)
        try waitFor("the call") { taken.value > 0 ? () : nil }
        #expect(taken.value == 1)
        session.invalidateAndCancel()
        mayLeave.open()
        try waitFor("the end") { notes.calls.last == "invalid" ? () : nil }
    }

    @Test func `US-87 US-45 a delegate that has not answered a response holds the server back`() throws {
        let server = try EndlessServer()
        let notes = Notes()
        let kept = Box<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
        notes.answerResponses { _, handler in kept.value.append(handler) }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url).resume()
        #expect(try server.waitUntilHeld(by: .loader) < Self.most)
        try waitFor("the call") { notes.calls == ["response 200"] ? () : nil }
        session.invalidateAndCancel()
        try waitFor("the end") { notes.calls.last == "invalid" ? () : nil }
        kept.value = []
    }

    @Test func `US-87 US-22 a run loop in another mode holds the server back`() throws {
        let server = try EndlessServer()
        let notes = Notes()
        try onLoopThread { loop in
            let session = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.dataTask(with: server.url)
            task.resume()
            loop.run(.work) { notes.body.count > 100_000 }
            let before = notes.body.count
            do {
                #expect(try server.waitUntilHeld(by: nil) < before + Self.most)
            } catch {
                Issue.record(error)
            }
            #expect(notes.body.count == before)
            task.cancel()
            loop.runOut(.work)
        }
        #expect(notes.completed == 1)
    }
}

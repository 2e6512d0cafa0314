import Rondo
import RondoTestSupport
import Synchronization
import Testing

/// What a task holds for a slow delegate.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct MemoryTests {
    /// A server that sends without end, and counts what it was rid of.
    private static func endlessServer(_ sent: Box<Int>) throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 120, count: 65_536)
            while true {
                try peer.send(piece)
                sent.value += piece.count
            }
        }
    }

    /// Waits until the server is held back: for a while it has sent nothing more.
    private static func waitUntilHeld(_ sent: Box<Int>) throws -> Int {
        let last = Box((bytes: -1, since: Date()))
        return try waitFor("the server to be held back") {
            let now = sent.value
            if now != last.value.bytes { last.value = (now, Date()) }
            return now > 0 && Date().timeIntervalSince(last.value.since) > 0.5 ? now : nil
        }
    }

    /// Of the kernel's buffers on both sides; the rest is Rondo's limit.
    private static let most = 32 << 20

    @Test func `US-87 US-20 a delegate that stands still on its queue holds the server back`() throws {
        let sent = Box(0)
        let server = try Self.endlessServer(sent)
        let (mayLeave, taken) = (Latch(), Box(0))
        let notes = Notes { call, task in
            guard call == "data" else { return }
            taken.value += 1
            do { try mayLeave.wait() } catch { Issue.record(error) }
        }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let before = try memoryInUse()
        session.dataTask(with: server.url()).resume()
        let bytes = try Self.waitUntilHeld(sent)
        #expect(taken.value == 1)
        #expect(bytes < Self.most)
        #expect(try memoryInUse() - before < Self.most)
        session.invalidateAndCancel()
        mayLeave.open()
        try waitFor("the end") { notes.calls.last == "invalid" ? () : nil }
    }

    @Test func `US-87 US-45 an answer that is owed holds the server back`() throws {
        let sent = Box(0)
        let server = try Self.endlessServer(sent)
        let notes = Notes()
        let kept = Box<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
        notes.answerResponses { _, handler in kept.value.append(handler) }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        #expect(try Self.waitUntilHeld(sent) < Self.most)
        #expect(notes.calls == ["response 200"])
        session.invalidateAndCancel()
        try waitFor("the end") { notes.calls.last == "invalid" ? () : nil }
        kept.value = []
    }

    @Test func `US-87 US-22 a run loop in another mode holds the server back`() throws {
        let sent = Box(0)
        let server = try Self.endlessServer(sent)
        let notes = Notes()
        try onLoopThread { loop in
            let session = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            let task = session.dataTask(with: server.url())
            task.resume()
            loop.run(.work) { notes.body.count > 100_000 }
            let before = notes.body.count
            do {
                #expect(try Self.waitUntilHeld(sent) < before + Self.most)
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

import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Misuse is logged once a connection, and goes on. Each in a process of its own, which has one log handler.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct WarningTests {
    @Test func `UC-7 scheduling after the start is warned about once a connection`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.connections")
            let server = try TestServer.answering { _ in "ok" }
            let recorder = Recorder()
            try onLoopThread { loop in
                for number in 0..<3 {
                    let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
                    // No misuse: another start, and a queue after an immediate start (rule UC-10).
                    connection?.start()
                    if number != 1 { connection?.schedule(in: loop, forMode: .tracking) }
                    if number != 2 { connection?.unschedule(from: loop, forMode: .default) }
                    if number != 1 { connection?.schedule(in: loop, forMode: .common) }
                    loop.runOut()
                }
                let quiet = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
                quiet?.start()
                quiet?.setDelegateQueue(OperationQueue())
                loop.runOut()
            }
            let entries = LogCatcher.log.entries
            precondition(entries.count == 3, "\(entries)")
            precondition(entries.allSatisfy { $0.hasPrefix("warning: ") }, "\(entries)")
            precondition(entries.allSatisfy { $0.contains(server.url().absoluteString) }, "\(entries)")
            precondition(entries.allSatisfy { $0.contains("after start()") }, "\(entries)")
        }
    }

    @Test func `UC-8 both a schedule and a queue are warned about, and the first is kept`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.connections")
            let server = try TestServer.answering { _ in "ok" }
            // The schedule first: its loop calls.
            let scheduled = Recorder()
            try onLoopThread { loop in
                scheduled.loop = loop
                let connection = URLConnection(
                    request: URLRequest(url: server.url()), delegate: scheduled, startImmediately: false)
                connection?.schedule(in: loop, forMode: .work)
                connection?.setDelegateQueue(OperationQueue())
                connection?.start()
                loop.runOut(.work)
            }
            precondition(scheduled.calls.last == "finish", "\(scheduled.calls)")
            precondition(scheduled.places == ["work"], "\(scheduled.places)")
            precondition(LogCatcher.log.entries.count == 1, "\(LogCatcher.log.entries)")
            // The queue first: no loop is needed.
            let queued = Recorder()
            try onLoopThread { loop in
                let connection = URLConnection(
                    request: URLRequest(url: server.url()), delegate: queued, startImmediately: false)
                connection?.setDelegateQueue(OperationQueue())
                connection?.schedule(in: loop, forMode: .work)
                connection?.start()
                let result = loop.run(in: .work, for: 0, returnAfterSourceHandled: false)
                precondition(result == .finished, "it was scheduled: \(result)")
            }
            try waitFor("the end of the load") { queued.isDone ? () : nil }
            precondition(queued.calls.last == "finish", "\(queued.calls)")
            precondition(LogCatcher.log.entries.count == 2, "\(LogCatcher.log.entries)")
        }
    }

    @Test func `UC-51 a file that cannot be written is warned about where the program names no storage`()
        async
    {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin("rondo.connections")
            let directory = try Stranger.Directory()
            try Data().write(to: URL(fileURLWithPath: directory.path + "/folder"))
            try URLConnection.PermanentCredentials.keep(
                in: URL(fileURLWithPath: directory.path + "/folder/credentials"))
            let space = URLProtectionSpace(
                host: "localhost", port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            for user in ["a", "b"] {
                PersistedCredentials.store(
                    URLCredential(user: user, password: "p", persistence: .permanent), for: space)
                PersistedCredentials.flush()
            }
            let entries = LogCatcher.log.entries
            precondition(entries.count == 1, "\(entries)")
            precondition(entries[0].hasPrefix("warning: \(directory.path)/folder/credentials"), "\(entries)")
            precondition(!entries[0].contains("\"p\""), "\(entries)")
        }
    }
}

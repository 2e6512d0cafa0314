import Rondo
import RondoTestSupport
import Testing

@testable import RondoCore

/// Methods that a class means for a delegate's and that Swift does not call.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct UncalledMethodTests {
    private class Conforming: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
    }

    private final class Adding: Conforming, @unchecked Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {}
    }

    /// With handlers as the protocols declare them. `@unchecked Sendable`: it has no state, as its superclass.
    private final class AddingHandlers: Conforming, @unchecked Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler:
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {}
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (Rondo.InputStream?) -> Void
        ) {}
    }

    /// Conforms to less than it has methods of.
    private final class TaskOnly: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {}
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}
    }

    /// Conforms to neither protocol that it has methods of.
    private final class SocketsOnly: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didOpenWithProtocol protocol: String?
        ) {}
        func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {}
    }

    @Test func `US-5 methods of WebSockets and stream tasks that are not called are warned about`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            _ = URLSession(configuration: .ephemeral, delegate: SocketsOnly(), delegateQueue: nil)
            let entries = try waitFor("the warning") {
                LogCatcher.log.entries.isEmpty ? nil : LogCatcher.log.entries
            }
            precondition(
                entries.joined().contains("URLSessionWebSocketDelegate")
                    && entries.joined().contains("URLSessionStreamDelegate"), "\(entries)")
        }
    }

    @Test func `US-5 methods that are not called are warned about`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            _ = URLSession(configuration: .ephemeral, delegate: Conforming(), delegateQueue: nil)
            _ = URLSession(configuration: .ephemeral, delegate: Adding(), delegateQueue: nil)
            _ = URLSession(configuration: .ephemeral, delegate: TaskOnly(), delegateQueue: nil)
            _ = URLSession(configuration: .ephemeral, delegate: AddingHandlers(), delegateQueue: nil)
            let entries = try waitFor("the warnings, of \(LogCatcher.log.entries)") {
                LogCatcher.log.entries.count >= 3 ? LogCatcher.log.entries : nil
            }
            precondition(
                entries[0].contains("Adding is used") && entries[0].contains("didCompleteWithError")
                    && entries[0].contains("Conforming declares"), "\(entries)")
            precondition(
                entries[1].contains("TaskOnly is used") && entries[1].contains("dataTask:didReceive")
                    && entries[1].contains("URLSessionDataDelegate"), "\(entries)")
            precondition(
                entries[2].contains("AddingHandlers is used") && entries[2].contains("needNewBodyStream")
                    && entries[2].contains("task:didReceive"), "\(entries)")
        }
    }

    private final class Silent: NSObject, URLSessionTaskDelegate, Sendable {}

    @Test func `US-40 a delegate that a task gets too late is warned about, and an early one is not`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            let session = URLSession(configuration: .ephemeral)
            let task = session.dataTask(with: URL(fileURLWithPath: "/"))
            for _ in 1...2 { task.delegate = Silent() }
            precondition(LogCatcher.log.entries.isEmpty, "\(LogCatcher.log.entries)")
            task.resume()
            task.delegate = nil
            precondition(
                LogCatcher.log.entries == [
                    "warning: A delegate that a task gets after resume() has no effect."
                ],
                "\(LogCatcher.log.entries)")
        }
    }
}

// Talks to a WebSocket server: each line of the standard input is a message, and each message that comes is a line.
// usage: WebSocketChat ws://HOST[:PORT]/PATH

import Rondo

/// Sends the input once the WebSocket is open, and ends the program when it has ended. On the main loop only, as all that the
/// session calls.
final class Chat: NSObject, URLSessionWebSocketDelegate {
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol name: String?
    ) {
        print("open" + (name.map { ", protocol \($0)" } ?? ""))
        // Not before: a WebSocket that is closed during its handshake sends nothing.
        Thread.detachNewThread {
            // A task may be used from any thread.
            while let line = readLine() {
                webSocketTask.send(.string(line)) { error in
                    if let error { print("not sent: \(error.localizedDescription)") }
                }
            }
            webSocketTask.cancel(with: .normalClosure, reason: nil)
        }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        let words = reason.map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
        print("closed: \(closeCode.rawValue)\(words)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { print("failed: \(error.localizedDescription)") }
        exit(error == nil ? 0 : 1)
    }
}

@main
struct WebSocketChat {
    static func main() {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: WebSocketChat ws://HOST[:PORT]/PATH")
            exit(2)
        }
        // All calls come on this thread, while its loop runs in the default mode.
        let session = URLSession(configuration: .default, delegate: Chat(), runLoop: .main)
        let task = session.webSocketTask(with: url)
        receive(from: task)
        task.resume()
        RunLoop.main.run()
    }

    /// One call, one message: while none is made, the server is held back.
    static func receive(from task: URLSessionWebSocketTask) {
        task.receive { result in
            switch result {
            case .success(.string(let text)): print(text)
            case .success(.data(let data)): print("\(data.count) bytes")
            case .failure: return
            }
            receive(from: task)
        }
    }
}

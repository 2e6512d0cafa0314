// Makes a connection on the main thread and has it called on another thread's run loop, in a mode that
// nothing else uses (rule TH-11).
// usage: CustomMode URL

import Rondo

let loading = RunLoop.Mode("org.example.loading")

/// Called on the loader's thread. The main thread looks at it after the end, and not before.
final class Loader: NSObject, URLConnectionDataDelegate {
    let ended = DispatchSemaphore(value: 0)
    private(set) var received: [String: Int] = [:]
    private(set) var failure: (any Error)?

    func connection(_ connection: URLConnection, didReceive data: Data) {
        let mode = RunLoop.current.currentMode?.rawValue ?? "no mode"
        let thread = Thread.isMainThread ? "main thread" : "loader's thread"
        received["\(thread), mode \(mode)", default: 0] += data.count
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        ended.signal()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        failure = error
        ended.signal()
    }
}

@main
struct CustomMode {
    static func main() {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: CustomMode URL")
            exit(2)
        }
        // A thread whose loop runs in our mode until it is told to stop.
        let thread = RunLoopThread(name: "loader", mode: loading)
        let loop = thread.start()

        let loader = Loader()
        let request = URLRequest(url: url)
        // Not started: it may still be scheduled. `schedule` replaces the loop of this thread by another.
        guard let connection = URLConnection(request: request, delegate: loader, startImmediately: false)
        else {
            print("nothing can load \(url)")
            exit(1)
        }
        connection.schedule(in: loop, forMode: loading)
        connection.start()

        loader.ended.wait()
        thread.stop()
        thread.join()
        for (place, count) in loader.received { print("\(place): \(count) bytes") }
        if let failure = loader.failure { print("failed: \(failure.localizedDescription)") }
        exit(loader.failure == nil ? 0 : 1)
    }
}

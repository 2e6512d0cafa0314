// Loads a URL on a background thread whose run loop is started and stopped by hand (rule TH-4).
// usage: BackgroundLoader URL

import Rondo

/// Made and called on the background thread only.
final class Loader: NSObject, NSURLConnectionDataDelegate {
    private let loop = CFRunLoopGetCurrent()
    private(set) var received = 0
    private(set) var failure: (any Error)?

    func connection(_ connection: NSURLConnection, didReceive data: Data) {
        received += data.count
    }

    func connectionDidFinishLoading(_ connection: NSURLConnection) {
        CFRunLoopStop(loop)
    }

    func connection(_ connection: NSURLConnection, didFailWithError error: any Error) {
        failure = error
        CFRunLoopStop(loop)
    }
}

@main
struct BackgroundLoader {
    static func main() {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: BackgroundLoader URL")
            exit(2)
        }
        let worker = Thread { exit(load(url)) }
        worker.start()
        // The main thread is free for other things, and here has none.
        DispatchSemaphore(value: 0).wait()
    }

    /// Runs on the worker. Returns the exit status.
    static func load(_ url: URL) -> Int32 {
        let loader = Loader()
        // Starts at once, on this thread's loop in the default mode. Nothing comes before that loop runs.
        guard NSURLConnection(request: URLRequest(url: url), delegate: loader) != nil else {
            print("nothing can load \(url)")
            return 1
        }
        // With a port in it the mode is never empty, so only the explicit stop ends the run.
        RunLoop.current.add(Port(), forMode: .default)
        CFRunLoopRun()
        // The loop was stopped, and the thread goes on here.
        if let failure = loader.failure {
            print("failed: \(failure.localizedDescription)")
            return 1
        }
        print("\(loader.received) bytes, and the thread goes on")
        return 0
    }
}

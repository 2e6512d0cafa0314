// A connection in the common modes beside a timer in the default mode, while the run loop changes between
// default and tracking: the connection goes on in both, the timer ticks in one.
// usage: CommonModesAndTimer URL

import Rondo

/// On the main thread's loop only.
final class Loader: NSObject, URLConnectionDataDelegate {
    private(set) var received: [RunLoop.Mode: Int] = [:]
    private(set) var isDone = false
    private(set) var failure: (any Error)?

    func connection(_ connection: URLConnection, didReceive data: Data) {
        if let mode = RunLoop.current.currentMode { received[mode, default: 0] += data.count }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        isDone = true
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        failure = error
        isDone = true
    }
}

@main
struct CommonModesAndTimer {
    static func main() {
        guard CommandLine.arguments.count == 2, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: CommonModesAndTimer URL")
            exit(2)
        }
        let loader = Loader()
        let request = URLRequest(url: url)
        guard let connection = URLConnection(request: request, delegate: loader, startImmediately: false)
        else {
            print("nothing can load \(url)")
            exit(1)
        }
        connection.schedule(in: .current, forMode: .common)
        connection.start()

        let timer = Timer(timeInterval: 0.1, repeats: true) { _ in print("  tick") }
        RunLoop.current.add(timer, forMode: .default)

        var mode = RunLoop.Mode.default
        while !loader.isDone {
            let before = loader.received[mode, default: 0]
            runLoop(in: mode, for: 0.5, while: { !loader.isDone })
            let count = loader.received[mode, default: 0] - before
            print(mode == .default ? "default: \(count) bytes" : "tracking: \(count) bytes")
            mode = mode == .default ? .tracking : .default
        }
        if let failure = loader.failure { print("failed: \(failure.localizedDescription)") }
        exit(loader.failure == nil ? 0 : 1)
    }

    static func runLoop(in mode: RunLoop.Mode, for seconds: Double, while condition: () -> Bool) {
        let end = Date(timeIntervalSinceNow: seconds)
        while condition(), end.timeIntervalSinceNow > 0 {
            RunLoop.current.run(mode: mode, before: end)
        }
    }
}

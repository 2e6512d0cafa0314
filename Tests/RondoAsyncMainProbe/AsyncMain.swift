import Rondo

/// An asynchronous main, whose first suspension gives the main thread away: its loop ends there.
///
/// Its argument says how it names the loop: `main`, as an asynchronous function has to, or `current`, as a
/// synchronous one may.
@main struct AsyncMain {
    @MainActor static func main() async {
        if CommandLine.arguments.last == "main" {
            RunLoop.main.add(tick, forMode: .default)
        } else {
            schedule()
        }
        while RunLoop.main.isAlive { await Task.yield() }
        print("the loop has ended")
    }

    private static func schedule() { RunLoop.current.add(tick, forMode: .default) }

    private static var tick: Timer {
        let timer = Timer(timeInterval: 60, repeats: true) { _ in }
        timer.label = "tick"
        return timer
    }
}

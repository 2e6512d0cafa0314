import Rondo

/// An asynchronous main, whose first suspension gives the main thread away: its loop ends there.
@main struct AsyncMain {
    @MainActor static func main() async {
        schedule()
        while RunLoop.main.isAlive { await Task.yield() }
        print("the loop has ended")
    }

    private static func schedule() {
        let timer = Timer(timeInterval: 60, repeats: true) { _ in }
        timer.label = "tick"
        RunLoop.current.add(timer, forMode: .default)
    }
}

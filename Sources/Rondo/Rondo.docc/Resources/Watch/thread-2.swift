import Rondo

let thread = Thread {
    let end = Date(timeIntervalSinceNow: 0.5)
    _ = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: true) { beat in
        print("beat")
        if Date() > end { beat.invalidate() }
    }
    RunLoop.current.run()
    print("the mode is empty, and run() has returned")
    exit(0)
}
thread.start()
Thread.sleep(forTimeInterval: 2)

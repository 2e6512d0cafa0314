import Rondo

let thread = Thread {
    let beat = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: true) { _ in print("beat") }
    Thread.sleep(forTimeInterval: 1)
    print(beat.whyNotDelivering)
    exit(0)
}
thread.start()
Thread.sleep(forTimeInterval: 2)

import Rondo

let worker = RunLoopThread(name: "worker")
let loop = worker.start()

let beat = Timer(timeInterval: 0.1, repeats: true) { _ in print("beat") }
loop.add(beat, forMode: .default)

Thread.sleep(forTimeInterval: 0.5)
worker.stop()
worker.join()

import Rondo
import Synchronization

let loopOfWorker = Mutex<RunLoop?>(nil)

let worker = Thread {
    let loop = RunLoop.current
    loop.add(Port(), forMode: .default)
    loopOfWorker.withLock { $0 = loop }
    let result = loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
    print("the run ended:", result)
    exit(0)
}
worker.start()
Thread.sleep(forTimeInterval: 1)
loopOfWorker.withLock { $0 }?.stop()
Thread.sleep(forTimeInterval: 1)

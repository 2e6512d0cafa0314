import Rondo

let worker = Thread {
    let loop = RunLoop.current
    loop.add(Port(), forMode: .default)
    let result = loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
    print("the run ended:", result)
    exit(0)
}
worker.start()
Thread.sleep(forTimeInterval: 1)
print("the worker still waits")

import Rondo

let loop = RunLoop.main
let began = Date()

let beat = Timer.scheduledTimer(withTimeInterval: 0.1, repeats: true) { _ in
    print("beat", String(format: "%.1f s", Date().timeIntervalSince(began)))
}
beat.label = "beat"

_ = loop.run(in: .default, for: 0.5, returnAfterSourceHandled: false)
print("the user scrolls")
_ = loop.run(in: .tracking, for: 0.5, returnAfterSourceHandled: false)
print("and has stopped")
_ = loop.run(in: .default, for: 0.5, returnAfterSourceHandled: false)

import BenchmarkSupport
// Peer: SwiftNIO, one event loop thread. W1 to W4 and W7. See ../../README.md.
import Glibc
import NIOCore
import NIOPosix

// `nonisolated(unsafe)`, `@unchecked Sendable`: an event loop's thread counts, and another reads only after a promise
// of that loop was waited for. Handlers are used by their channel's event loop alone.
let peer = "nio"
let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
let loop = group.next()

func nanos(_ unit: Double) -> TimeAmount { .nanoseconds(Int64(unit * 1e9)) }

func churn(_ n: Int) throws {  // scheduleTask, called on the loop
    let done = loop.makePromise(of: Void.self)
    nonisolated(unsafe) var fired = 0, sched = (0.0, 0.0)
    let m = Meter()
    loop.execute {
        var random = SplitMix()
        for _ in 0..<n {
            loop.scheduleTask(in: nanos(random.unit())) {
                fired += 1
                if fired == n { done.succeed() }
            }
        }
        sched = (m.wall, m.cpu)
    }
    try done.futureResult.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportChurn(peer, n, scheduled: sched, wall: wall, cpu: cpu)
}

final class Callback: NIOScheduledCallbackHandler, @unchecked Sendable {
    var fired = 0
    let n: Int, done: EventLoopPromise<Void>
    init(_ n: Int, _ done: EventLoopPromise<Void>) { (self.n, self.done) = (n, done) }
    func handleScheduledCallback(eventLoop: some EventLoop) {
        fired += 1
        if fired == n { done.succeed() }
    }
}
func churnCallback(_ n: Int) throws {  // scheduleCallback: NIO's cheaper timer
    let done = loop.makePromise(of: Void.self), handler = Callback(n, done)
    nonisolated(unsafe) var sched = (0.0, 0.0)
    let m = Meter()
    loop.execute {
        var random = SplitMix()
        for _ in 0..<n { _ = try! loop.scheduleCallback(in: nanos(random.unit()), handler: handler) }
        sched = (m.wall, m.cpu)
    }
    try done.futureResult.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportChurn("nio-callback", n, scheduled: sched, wall: wall, cpu: cpu)
}

func cancel(_ n: Int) throws {
    let m = Meter()
    try loop.submit {
        var random = SplitMix(), tasks: [Scheduled<Void>] = []
        tasks.reserveCapacity(n)
        for _ in 0..<n { tasks.append(loop.scheduleTask(in: .hours(1) + nanos(random.unit())) {}) }
        for t in tasks { t.cancel() }
    }.wait()
    try loop.submit {}.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    report(
        sized("W1.cancel", n, standard: 1_000_000), peer, wall * 1e9 / Double(n), "ns/timer", wall: wall,
        cpu: cpu)
}

func repeating(_ n: Int, _ seconds: Int) throws {
    nonisolated(unsafe) var late: [Int64] = [], tasks: [RepeatedTask] = []
    late.reserveCapacity(n * 100 * (seconds + 1))
    let m = Meter()
    try loop.submit {
        for i in 0..<n {
            let ms = 10 + i % 10, first = nowNanos() + Int64(ms) * 1_000_000
            tasks.append(
                loop.scheduleRepeatedTask(initialDelay: .milliseconds(Int64(ms)), delay: .milliseconds(10)) {
                    _ in
                    late.append(lateness(nowNanos(), first: first, interval: 10_000_000))
                })
        }
    }.wait()
    let left = Double(seconds) - m.wall
    if left > 0 { usleep(UInt32(left * 1e6)) }
    var mine: [Int64] = []
    let (wall, cpu) = (m.wall, m.cpu)
    mine = try loop.submit { late }.wait()
    reportRepeat(peer, late: &mine, wall: wall, cpu: cpu)
    exit(0)
}

func perform(_ n: Int) throws {
    nonisolated(unsafe) var count = 0
    try loop.submit {}.wait()
    let m = Meter()
    for _ in 0..<n { loop.execute { count += 1 } }
    try loop.submit {}.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(count == n)
    report("W2.perform", peer, wall * 1e9 / Double(n), "ns/block", wall: wall, cpu: cpu)
    report("W2.perform.cpu", peer, cpu * 1e9 / Double(n), "cpu-ns/block", wall: wall, cpu: cpu)
}

func pingpong(_ n: Int) throws {
    let two = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    let a = two.next(), b = two.next(), done = a.makePromise(of: Void.self)
    nonisolated(unsafe) var rtt: [Int64] = [], sent: Int64 = 0
    rtt.reserveCapacity(n)
    let m = Meter()
    @Sendable func pong() {
        let t = nowNanos()
        if sent != 0 { rtt.append(t - sent) }
        if rtt.count == n {
            done.succeed()
            return
        }
        sent = nowNanos()
        b.execute { a.execute(pong) }
    }
    a.execute(pong)
    try done.futureResult.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportPingPong(peer, rtt: &rtt, wall: wall, cpu: cpu)
}

nonisolated(unsafe) var writesLeft = 0, eventsLeft = 0
final class PassByte: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    let next: Int32, done: EventLoopPromise<Void>
    init(next: Int32, done: EventLoopPromise<Void>) { (self.next, self.done) = (next, done) }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        for _ in 0..<unwrapInboundIn(data).readableBytes {
            if writesLeft > 0 {
                writesLeft -= 1
                writeOneByte(next)
            }
            eventsLeft -= 1
            if eventsLeft == 0 { done.succeed() }
        }
    }
}
func fds(_ n: Int, _ active: Int, _ events: Int) throws {
    let pairs = socketPairs(n), done = loop.makePromise(of: Void.self)
    for i in 0..<n {
        let next = pairs[(i + 1) % n].write
        _ = try ClientBootstrap(group: group)
            .channelInitializer { $0.pipeline.addHandler(PassByte(next: next, done: done)) }
            .withConnectedSocket(pairs[i].read).wait()
    }
    try loop.submit {
        writesLeft = events - active; eventsLeft = events
    }.wait()
    let m = Meter()
    for i in 0..<active { writeOneByte(pairs[i * (n / active)].write) }
    try done.futureResult.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    report("W3.fds", peer, wall * 1e9 / Double(events), "ns/event", wall: wall, cpu: cpu)
    report("W3.fds.cpu", peer, cpu * 1e9 / Double(events), "cpu-ns/event", wall: wall, cpu: cpu)
}

final class Echo: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.write(data, promise: nil) }
    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
func echo(_ port: Int) throws {
    let channel = try ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 4096)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelInitializer { $0.pipeline.addHandler(Echo()) }
        .bind(host: "127.0.0.1", port: port).wait()
    reportReady(port: channel.localAddress?.port ?? 0)
    try channel.closeFuture.wait()
}

final class Idle: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
}
func idle(_ port: Int, _ n: Int) throws {
    try loop.submit {}.wait()
    let before = currentRSSKiB(), m = Meter()
    var channels: [any Channel] = []
    channels.reserveCapacity(n)
    for _ in 0..<n {
        channels.append(
            try ClientBootstrap(group: group)
                .channelInitializer { $0.pipeline.addHandler(Idle()) }
                .connect(host: "127.0.0.1", port: port).wait())
    }
    usleep(200_000)
    report(
        "W7.idle", peer, Double(currentRSSKiB() - before) * 1024 / Double(n), "bytes/connection",
        wall: m.wall, cpu: m.cpu)
    exit(0)
}

func curveTimers(_ n: Int) throws {  // in rounds: n timers with delays below n microseconds
    var random = SplitMix()
    let rounds = max(1, curveItems / n), m = Meter()
    for _ in 0..<rounds {
        let delays = (0..<n).map { _ in nanos(random.unit() * Double(n) * 1e-6) }
        let done = loop.makePromise(of: Void.self), handler = Callback(n, done)
        loop.execute {
            for delay in delays { _ = try! loop.scheduleCallback(in: delay, handler: handler) }
        }
        try done.futureResult.wait()
    }
    reportCurve("timers", n, peer, items: rounds * n, wall: m.wall, cpu: m.cpu)
}

switch argument(1, "") {
case "churn": try churn(argument(2, 1_000_000))
case "churn-callback": try churnCallback(argument(2, 1_000_000))
case "cancel": try cancel(argument(2, 10_000))
case "repeat": try repeating(argument(2, 10_000), argument(3, 3))
case "perform": try perform(argument(2, 1_000_000))
case "pingpong": try pingpong(argument(2, 200_000))
case "fds": try fds(argument(2, 9_900), argument(3, 100), argument(4, 1_000_000))
case "echo": try echo(argument(2, 0))
case "idle": try idle(argument(2, 7402), argument(3, 10_000))
case "curve-timers": try curveTimers(argument(2, 100))
default:
    print(
        "usage: bench-nio churn|churn-callback|cancel|repeat|perform|pingpong|fds|echo|idle|curve-timers [N]")
    exit(2)
}

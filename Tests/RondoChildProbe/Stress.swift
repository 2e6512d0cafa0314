import Rondo
import RondoMutex

/// Runs children of every kind at once, from several threads, with random deaths and with children of their
/// own.
///
/// Arguments: the number of children, the number of threads, and the seed. Each end must be reported once,
/// with the expected status. At the end there is no child, no zombie and no further descriptor.
///
/// If the program was started with the library of Tests/RondoFaults, system calls fail meanwhile, and a child
/// that could not be started because of that is tried again.
func stress(_ arguments: [String]) {
    let numbers = arguments.compactMap { Int($0) }
    let count = numbers.first ?? 1_000
    let threads = numbers.dropFirst().first ?? 4
    let seed = numbers.dropFirst(2).first ?? 1
    // The objects that are made with the first child remain.
    Batch(count: 4 * kinds.count, seed: 0).run()
    let before = openDescriptors()
    Faults.arm(true)
    let done = DispatchSemaphore(value: 0)
    for index in 0..<threads {
        let thread = Thread {
            Batch(count: count / threads, seed: UInt64(seed * 1_000 + index)).run()
            done.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
    }
    for _ in 0..<threads { done.wait() }
    Faults.arm(false)
    // Threads close the descriptors of their loops a little later.
    for _ in 0..<1_000 where openDescriptors() > before + 4 { usleep(10_000) }
    expect(openDescriptors() <= before + 4, "descriptors: \(before), then \(openDescriptors())")
    expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD, "no child is left")
}

/// The library that makes calls fail, if the program was started with it.
private enum Faults {
    /// Safe: the type is that of `rondo_faults_arm` in faults.c.
    private static let function = dlsym(nil, "rondo_faults_arm").map {
        unsafeBitCast($0, to: (@convention(c) (Int32) -> Void).self)
    }

    static var areThere: Bool { function != nil }

    static func arm(_ isArmed: Bool) { function?(isArmed ? 1 : 0) }
}

/// The script of a child, and its expected end.
private struct Kind: Sendable {
    let script: String
    /// Nil if the status depends on timing.
    let status: Child.Status?
    /// The parent's action on the child.
    var act: (@Sendable (Child) -> Void)?
}

private let kinds: [Kind] = [
    Kind(script: "exit 0", status: .exited(0)),
    Kind(script: "exit 17", status: .exited(17)),
    Kind(script: "kill -KILL $$", status: .signalled(SIGKILL, coreDumped: false)),
    Kind(script: "kill -TERM $$", status: .signalled(SIGTERM, coreDumped: false)),
    // The parent kills the child at any moment of its life.
    Kind(script: "exit 0", status: nil, act: { $0.kill() }),
    Kind(script: "exec cat", status: .signalled(SIGTERM, coreDumped: false), act: { $0.stop() }),
    // A grandchild outlives the child and keeps the output open until the input ends.
    Kind(script: "exec 3<&0; cat <&3 & exit 5", status: .exited(5)),
    Kind(script: "(exit 3) & wait $!", status: .exited(3)),
    // More bytes than a pipe holds.
    Kind(script: "head -c 200000 /dev/zero", status: .exited(0)),
]

/// The children of one thread, a dozen at a time.
private final class Batch: Sendable {
    private static let atOnce = 12

    private struct State {
        var begun = 0
        var ends = 0
        var completions = 0
        var random: UInt64
    }

    private let count: Int
    private let state: Mutex<State>

    init(count: Int, seed: UInt64) {
        self.count = count
        state = Mutex(State(random: seed &* 0x9E37_79B9_7F4A_7C15 | 1))
    }

    func run() {
        let loop = RunLoop.current
        for _ in 0..<min(Self.atOnce, count) { beginNext(on: loop) }
        while state.withLock({ $0.completions }) < count {
            let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
            expect(result == .handledSource, "an end is told within a minute: \(result)")
        }
        expect(state.withLock { $0.ends } == count, "each end is told once")
    }

    private func random() -> Int {
        state.withLock { state in
            // xorshift64
            state.random ^= state.random << 13
            state.random ^= state.random >> 7
            state.random ^= state.random << 17
            return Int(state.random >> 33)
        }
    }

    private func spawn(_ configuration: Child.Configuration) -> Child? {
        while true {
            do {
                return try Child.spawn(configuration)
            } catch {
                expect(Faults.areThere, "a child is started: \(error)")
            }
        }
    }

    private func beginNext(on loop: RunLoop) {
        let number = state.withLock { state -> Int? in
            guard state.begun < count else { return nil }
            state.begun += 1
            return state.begun
        }
        guard number != nil else { return }
        let kind = kinds[random() % kinds.count]
        var configuration = Child.Configuration("/bin/sh", ["-c", kind.script])
        configuration.standardInput = .stream
        configuration.standardOutput = .collected(limit: 1 << 20)
        configuration.outputGrace = 0.01
        configuration.group = random() % 2 == 0 ? .own : .parents
        guard let child = spawn(configuration) else { return }
        child.onEnd = { [self] child, status in
            state.withLock { $0.ends += 1 }
            // An output that could not be read is closed, which ends a child that writes.
            guard let wanted = kind.status, child.error == nil else { return }
            expect(status == wanted, "\(kind.script): \(status)")
        }
        child.onCompletion = { [self] _, _ in
            state.withLock { $0.completions += 1 }
            beginNext(on: loop)
        }
        if random() % 4 == 0 { usleep(UInt32(random() % 2_000)) }
        child.schedule(in: loop, forMode: random() % 2 == 0 ? .default : .common)
        if kind.act == nil || random() % 2 == 0 { usleep(UInt32(random() % 100)) }
        kind.act?(child)
    }
}

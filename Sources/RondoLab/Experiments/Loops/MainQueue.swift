import Rondo
internal import RondoTrace

extension Experiment {
    static let mainQueue = Experiment(
        "main-queue", title: "The main queue, and a run nested in it",
        question: """
            A block on DispatchQueue.main runs the main loop again, in the default mode. Another block is waiting on the \
            main queue. Does it run inside the nested run?
            """,
        choices: ["Yes", "No: it comes once the first block has returned", "Never", "On another thread"],
        answer: 1,
        why: """
            The main loop drains the main queue in its common modes. But a queue runs one block at a time: while a block \
            is on the stack, the nested run leaves the queue alone. Everything else of the mode, a timer say, is served. \
            In a private mode the queue is not drained at all.
            """,
        rules: ["RL-59", "RL-14", "RL-42"], needsMainThread: true, body: mainQueueCode
    ) { evidence in
        let modal = RunLoop.Mode("modal")
        let outerBlock = evidence.notes("the first block returns").first
        let second = evidence.notes("the second block").first
        let drains = evidence.ofKind(.mainQueue)
        let nested = evidence.activations(mode: .default).filter { $0.depth > 1 }
        let timers = evidence.calls("timer").filter { timer in nested.contains { $0.contains(timer) } }
        let privately = drains.filter { evidence.runs($0, in: modal) }
        return [
            Check(
                "in a private mode the queue is not drained",
                privately.isEmpty && !evidence.activations(mode: modal).isEmpty,
                seen: "in modal it was drained \(Evidence.times(privately.count))"),
            Check(
                "in default it is", drains.contains { evidence.runs($0, in: .default) },
                seen:
                    "in default it was drained \(Evidence.times(drains.count { evidence.runs($0, in: .default) }))"
            ),
            Check(
                "the second block waits until the first has returned",
                Evidence.inOrder(outerBlock?.began, second?.began) && !nested.isEmpty,
                seen: outerBlock.flatMap { first in
                    second.map { "it came \(Evidence.milliseconds($0.began - first.began)) after that" }
                } ?? "it never came"),
            Check(
                "a timer is served in the nested run", !timers.isEmpty,
                seen: "the timer fired there \(Evidence.times(timers.count))"),
        ]
    }
}

// begin main-queue
@Sendable private func mainQueueCode(_ stage: Stage) throws {
    let loop = RunLoop.main
    let modal = RunLoop.Mode("modal")
    loop.keepAlive(in: modal)
    let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
    timer.label = "timer"
    loop.add(timer, forMode: .default)
    let isDone = Shared(false)

    DispatchQueue.main.async {
        DispatchQueue.main.async {
            stage.note("the second block")
            isDone.value = true
        }
        loop.spend(0.1, in: .default)  // the loop again, inside a block of the queue
        stage.note("the first block returns")
    }
    loop.spend(0.1, in: modal)  // private: the queue waits
    try stage.run(loop, .default) { isDone.value }
    timer.invalidate()
}
// end

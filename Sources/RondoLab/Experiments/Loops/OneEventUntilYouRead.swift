import Rondo
internal import RondoTrace

extension Experiment {
    static let oneEventUntilYouRead = Experiment(
        "one-event-until-you-read", title: "One event until you read",
        question: """
            A stream has bytes. Its delegate hears hasBytesAvailable and does not read. More bytes come, five times. \
            How many events does it get before it reads?
            """,
        choices: ["Six", "One", "One each pass", "None"], answer: 1,
        why: """
            After one hasBytesAvailable no other is sent until bytes are read: a delegate that was told and has not read yet \
            has nothing new to learn. After a read the next event follows, if bytes remain or arrive. So a handler need \
            not read everything, but it has to read something.
            """,
        rules: ["ST-13", "ST-15", "ST-36"], body: oneEventUntilYouReadCode
    ) { evidence in
        let events = evidence.notes("hasBytesAvailable").map(\.began)
        let wrote = evidence.notes("wrote").map(\.began)
        let read = evidence.notes("read one byte").first?.began
        let before = events.filter { event in read.map { event < $0 } ?? true }
        let after = events.filter { event in read.map { event > $0 } ?? false }
        return [
            Check(
                "until it reads, there is one event", before.count == 1 && wrote.count >= 5 && read != nil,
                seen:
                    "bytes were written \(Evidence.times(wrote.count)), and before the read hasBytesAvailable came \(Evidence.times(before.count))"
            ),
            Check(
                "after one byte was read, the next event comes for the rest", after.count == 1,
                seen: "after the read it came \(Evidence.times(after.count))"),
        ]
    }
}

// begin one-event-until-you-read
private final class Listener: NSObject, StreamDelegate, Sendable {
    let stage: Stage
    init(_ stage: Stage) { self.stage = stage }

    func stream(_ stream: Stream, handle event: Stream.Event) {
        if event == .hasBytesAvailable { stage.note("hasBytesAvailable") }
    }
}

@Sendable private func oneEventUntilYouReadCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    var input: InputStream?, output: OutputStream?
    Stream.getBoundStreams(withBufferSize: 1000, inputStream: &input, outputStream: &output)
    guard let input, let output else { throw StageFailure.noConnection }
    let listener = Listener(stage)
    input.label = "input"
    input.delegate = listener
    input.schedule(in: loop, forMode: .default)
    input.open()
    output.open()
    for _ in 1...5 {
        _ = output.write([1, 2, 3], maxLength: 3)
        stage.note("wrote")
        loop.spend(0.03, in: .default)
    }
    var byte: UInt8 = 0
    stage.note("read one byte")
    _ = input.read(&byte, maxLength: 1)
    loop.spend(0.05, in: .default)
    input.close()
    output.close()
}
// end

import Rondo

extension Experiment {
    static let lateChallenge = Experiment(
        "late-challenge", title: "A challenge that is answered late",
        question: """
            The server wants a name and a password. The delegate keeps the challenge and returns; the answer comes 0.3 s \
            later, from elsewhere, as when the user has to type it. What does the loop do meanwhile?
            """,
        choices: [
            "It waits inside the callback", "It runs on: everything else is served, this load waits",
            "The load fails at once", "The load goes on without a password",
        ], answer: 1,
        why: """
            A challenge is a question with a sender to answer to. Until it is answered, the load stands still, and the \
            loop is free: timers fire, other loads go on. The answer may come from any place, once; the request is then \
            sent again with it.
            """,
        rules: ["UC-44", "UC-47"], body: lateChallengeCode
    ) { evidence in
        let asked = evidence.calls("load").first { evidence.recording.name($0) == "challenge" }
        let answered = evidence.notes("answered").first
        let beats = evidence.calls("beat").filter { beat in
            (asked?.began ?? .max) < beat.began && beat.began < (answered?.began ?? 0)
        }
        let responses = evidence.delegateCalls("load", "didReceive response")
        let early = responses.filter { $0.began < (answered?.began ?? .max) }
        let status = evidence.notes("status").map { Int($0.duration) }
        let returns =
            if let asked, let answered { asked.duration < (answered.began - asked.began) / 2 } else { false }
        return [
            Check(
                "the delegate is asked", asked != nil,
                seen: asked.map { "at \(evidence.time($0.began))" } ?? "never"),
            Check(
                "its callback returns at once, and does not wait for the answer", returns,
                seen: asked.map { "it took \(Evidence.milliseconds($0.duration))" } ?? "it never came"),
            Check(
                "until it is answered the loop serves others", beats.count >= 3,
                seen: "a timer fired \(Evidence.times(beats.count)) meanwhile"),
            Check(
                "and the load stands still", early.isEmpty && answered != nil,
                seen: "before the answer it had \(early.count) responses"),
            Check(
                "after the answer it goes on", status == [200],
                seen: "its responses: \(status.map(String.init).joined(separator: ", "))"),
            .finished("load", evidence),
        ]
    }
}

// begin late-challenge
private final class Patient: NSObject, URLConnectionDataDelegate {
    let stage: Stage
    var challenge: URLAuthenticationChallenge?, isDone = false
    init(_ stage: Stage) { self.stage = stage }

    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        self.challenge = challenge  // return at once: the loop goes on
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        stage.note("status", (response as? HTTPURLResponse)?.statusCode ?? 0)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
}

@Sendable private func lateChallengeCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let beat = Timer.scheduledTimer(withTimeInterval: 0.03, repeats: true) { _ in }
    beat.label = "beat"
    let patient = Patient(stage)
    try URLConnection.labelled("load", stage.url("/secret"), patient).start()

    try stage.run(loop) { patient.challenge != nil }
    loop.spend(0.3, in: .default)  // the user types
    stage.note("answered")
    let credential = URLCredential(user: "user", password: "secret", persistence: .none)
    if let challenge = patient.challenge { challenge.sender?.use(credential, for: challenge) }

    try stage.run(loop) { patient.isDone }
    beat.invalidate()
}
// end

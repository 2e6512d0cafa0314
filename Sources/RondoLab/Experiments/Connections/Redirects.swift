import Rondo

extension Experiment {
    static let redirects = Experiment(
        "redirects", title: "Redirects allowed, refused, and changed",
        question: """
            The server answers 302 with another place. A delegate returns nil from willSend, to refuse it. What does it \
            get next?
            """,
        choices: [
            "didFailWithError", "Nothing", "The 302 itself as the response, with its body",
            "The response of the other place",
        ], answer: 2,
        why: """
            willSend is a question: this is where I would go, is that all right? Returning the request follows the \
            redirect, and the redirect's own response is never shown. Returning nil means “not there”: then the redirect \
            is the answer. Returning another request goes there instead.
            """,
        rules: ["UC-24", "UC-28", "UC-30"], body: redirectsCode
    ) { evidence in
        func status(_ label: String, _ expected: [Int], _ sentence: String) -> Check {
            let seen = evidence.notes("\(label): status").map { Int($0.duration) }
            return Check(
                sentence, seen == expected,
                seen: "its responses: \(seen.map(String.init).joined(separator: ", "))")
        }
        func asked(_ label: String) -> Check {
            let count = evidence.delegateCalls(label, "willSend").count
            return Check(
                "“\(label)” is asked about the redirect", count > 0,
                seen: "it was asked \(Evidence.times(count))")
        }
        return ["allowed", "refused", "changed"].flatMap { [asked($0), .finished($0, evidence)] } + [
            status("allowed", [200], "allowed, only the other place's response is shown"),
            status("refused", [302], "refused, the redirect is the response"),
            status("changed", [404], "changed, the response is that of the place it was sent to"),
        ]
    }
}

// begin redirects
private final class Redirected: NSObject, URLConnectionDataDelegate, Sendable {
    let name: String, stage: Stage, isDone = Shared(false)
    let answer: @Sendable (URLRequest) -> URLRequest?

    init(_ name: String, _ stage: Stage, answer: @escaping @Sendable (URLRequest) -> URLRequest?) {
        (self.name, self.stage, self.answer) = (name, stage, answer)
    }

    func connection(_ c: URLConnection, willSend request: URLRequest, redirectResponse: URLResponse?)
        -> URLRequest?
    {
        redirectResponse == nil ? request : answer(request)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        stage.note("\(name): status", (response as? HTTPURLResponse)?.statusCode ?? 0)
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { isDone.value = true }
}

@Sendable private func redirectsCode(_ stage: Stage) throws {
    let elsewhere = URLRequest(url: stage.url("/nowhere"))
    let delegates = [
        Redirected("allowed", stage) { $0 }, Redirected("refused", stage) { _ in nil },
        Redirected("changed", stage) { _ in elsewhere },
    ]
    for delegate in delegates {
        try URLConnection.labelled(delegate.name, stage.url("/redirect"), delegate).start()
    }
    try stage.run(RunLoop.current) { delegates.allSatisfy(\.isDone.value) }
}
// end

import Rondo

extension Experiment {
    static let mixedReplace = Experiment(
        "mixed-replace", title: "multipart/x-mixed-replace: one load, many responses",
        question: """
            A camera sends one long body whose parts replace each other; here it sends three and ends. How often is \
            didReceive response called, and how often connectionDidFinishLoading?
            """,
        choices: [
            "Once and once", "Four times and once", "Three times and three times",
            "Four times and four times",
        ],
        answer: 1,
        why: """
            The outer response comes first, without data. Then each part is announced by a response of its own, \
            which may have another type, and its data follow. What came before is replaced: whether to throw it away is the \
            delegate's affair. The load ends once, after the last part.
            """,
        rules: ["UC-22", "UC-23", "UC-18"], body: mixedReplaceCode
    ) { evidence in
        let notes = evidence.ofKind(.mark).map { evidence.recording.name($0) }
        let types = notes.filter { $0.hasPrefix("response ") }
        let bytes = evidence.notes("bytes of the part").map { Int($0.duration) }
        let parts = notes.drop { $0 != "response multipart/x-mixed-replace" }.dropFirst()
        let responses = evidence.delegateCalls("camera", "didReceive response").map(\.began)
        let data = evidence.delegateCalls("camera", "didReceive data").map(\.began)
        return [
            Check(
                "the outer response comes first, once, and without data",
                notes.first == "response multipart/x-mixed-replace"
                    && parts.first == "response text/plain"
                    && responses.count > 1 && !data.contains { $0 < responses[1] },
                seen: "first came " + notes.prefix(2).joined(separator: ", then ")),
            Check(
                "each part has a response of its own, of its own type",
                types == [
                    "response multipart/x-mixed-replace", "response text/plain", "response text/plain",
                    "response text/html",
                ] && responses.count == 4,
                seen: "didReceive response was called \(Evidence.times(responses.count)): "
                    + types.map { String($0.dropFirst("response ".count)) }.joined(separator: ", ")),
            Check(
                "and its own data, whole", bytes == [5, 10, 15],
                seen: "the parts had \(bytes.map(String.init).joined(separator: ", ")) bytes"),
            .finished("camera", evidence),
        ]
    }
}

// begin mixed-replace
private final class Viewer: NSObject, URLConnectionDataDelegate {
    let stage: Stage
    var picture = Data(), isDone = false
    init(_ stage: Stage) { self.stage = stage }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        show()  // the next part ends the picture
        stage.note("response \(response.mimeType ?? "without a type")")
        picture = Data()  // the next picture replaces it
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { picture.append(data) }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        show()  // the last one
        isDone = true
    }

    private func show() {
        if !picture.isEmpty { stage.note("bytes of the part", picture.count) }
    }
}

@Sendable private func mixedReplaceCode(_ stage: Stage) throws {
    let viewer = Viewer(stage)
    try URLConnection.labelled("camera", stage.url("/camera"), viewer).start()
    try stage.run(.current) { viewer.isDone }
}
// end

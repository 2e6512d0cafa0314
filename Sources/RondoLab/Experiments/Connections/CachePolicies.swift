import Rondo

extension Experiment {
    /// The outcomes of a cache policy: requests to the server, and the version that the delegate gets; no
    /// version if the load fails.
    private struct Outcomes {
        let policy: String
        /// The label of the policy's loads in the timeline.
        let label: String
        /// For a fresh entry, for a stale one, and for none.
        let requests: [Int]
        let versions: [Int]
        let sentence: String
    }

    private static let states = ["fresh", "stale", "missing"]

    /// The table of rule UC-56.
    private static let outcomes = [
        Outcomes(
            policy: "useProtocolCachePolicy", label: "0 protocol", requests: [0, 1, 1], versions: [1, 1, 1],
            sentence: "takes what is fresh, asks about what is stale, loads what is missing"),
        Outcomes(
            policy: "reloadIgnoringLocalCacheData", label: "1 reload", requests: [1, 1, 1],
            versions: [2, 2, 1],
            sentence: "always loads"),
        Outcomes(
            policy: "returnCacheDataElseLoad", label: "2 else load", requests: [0, 0, 1],
            versions: [1, 1, 1],
            sentence: "takes the entry whatever its age, and loads what is missing"),
        Outcomes(
            policy: "returnCacheDataDontLoad", label: "3 don't load", requests: [0, 0, 0],
            versions: [1, 1, 0],
            sentence: "takes the entry whatever its age, and fails where there is none"),
        Outcomes(
            policy: "reloadIgnoringLocalAndRemoteCacheData", label: "4 reload, all", requests: [1, 1, 1],
            versions: [2, 2, 1],
            sentence: "always loads"),
        Outcomes(
            policy: "reloadRevalidatingCacheData", label: "5 revalidate", requests: [1, 1, 1],
            versions: [1, 1, 1],
            sentence: "takes the entry once the server has confirmed it, and loads what is missing"),
    ]

    static let cachePolicies = Experiment(
        "cache-policies", title: "Six cache policies side by side",
        question: """
            A file is in the cache and still fresh, or in the cache and stale, or not there. It is loaded with each of \
            the six cache policies. Which of them never asks the server, whatever the cache holds?
            """,
        choices: [
            "useProtocolCachePolicy", "returnCacheDataElseLoad", "returnCacheDataDontLoad",
            "reloadRevalidatingCacheData",
        ], answer: 2,
        why: """
            The protocol's own policy follows HTTP: fresh is used, stale is asked about, and the answer “not \
            modified” costs no body. The two that reload never look into the cache; one of them also tells caches on \
            the way not to answer. The two that return cached data do not look at its age, and only DontLoad would \
            rather fail, with resourceUnavailable (−2000), than use the network. What the cache answers comes by the \
            same delegate calls, from the run loop, never inside start().
            """,
        rules: ["UC-56", "UC-55", "UC-53"], body: cachePoliciesCode
    ) { evidence in
        func values(_ label: String, _ what: String) -> [Int?] {
            states.map { evidence.notes("\(label), \($0): \(what)").last.map { Int($0.duration) } }
        }
        var checks = outcomes.map { row in
            let (requests, versions) = (values(row.label, "requests"), values(row.label, "version"))
            let words = states.enumerated().map { place, state in
                let version = versions[place].map { $0 > 0 ? "version \($0)" : "a failure" } ?? "nothing"
                return "\(state): \(requests[place] == 0 ? "not asked" : "asked"), \(version)"
            }
            return Check(
                "\(row.policy) \(row.sentence)", requests == row.requests && versions == row.versions,
                seen: words.joined(separator: "; "))
        }
        let told = outcomes.filter { values($0.label, "caches on the way were told") == [1, 1, 1] }.map(
            \.policy)
        checks.append(
            Check(
                "one of them tells caches on the way not to answer",
                told == ["reloadIgnoringLocalAndRemoteCacheData"],
                seen: told.isEmpty ? "none did" : told.joined(separator: ", ") + " did"))
        let failures = evidence.notes("error").map { Int($0.duration) }
        checks.append(
            Check(
                "the one failure is −2000, of what is not in the cache", failures == [-2000],
                seen: failures.isEmpty
                    ? "none failed" : "\(failures.map(String.init).joined(separator: ", "))"))
        let expected = ["didReceive response", "didReceive data", "connectionDidFinishLoading"]
        let calls = evidence.delegateCalls("2 else load")
        let names = calls.map { evidence.recording.name($0) }.filter(expected.contains).prefix(3)
        let inside = calls.filter { call in evidence.activations().contains { $0.contains(call) } }
        checks.append(
            Check(
                "the cache answers by the same calls, from the loop",
                Array(names) == expected && inside.count == calls.count,
                seen: names.joined(separator: ", ") + "; \(calls.count - inside.count) outside of a run"))
        return checks
    }
}

// begin cache-policies
@Sendable private func cachePoliciesCode(_ stage: Stage) throws {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    let policies: [(name: String, policy: URLRequest.CachePolicy)] = [
        ("0 protocol", .useProtocolCachePolicy), ("1 reload", .reloadIgnoringLocalCacheData),
        ("2 else load", .returnCacheDataElseLoad), ("3 don't load", .returnCacheDataDontLoad),
        ("4 reload, all", .reloadIgnoringLocalAndRemoteCacheData),
        ("5 revalidate", .reloadRevalidatingCacheData),
    ]
    func load(_ label: String, _ url: URL, _ policy: URLRequest.CachePolicy) throws -> Reader {
        let reader = Reader()
        let load = try URLConnection.labelled(label, URLRequest(url: url, cachePolicy: policy), reader)
        load.configuration.cache = cache
        load.start()
        try stage.run(.current) { reader.isDone }
        return reader
    }
    for (name, policy) in policies {
        for (state, age) in [("fresh", 60), ("stale", 0), ("missing", 60)] {
            // The entry stays fresh for `age` seconds; its Nth version is N bytes long.
            let url = stage.url("/news/\(age)/\(state)-\(policy.rawValue)")
            if state != "missing" { _ = try load("to fill the cache", url, .useProtocolCachePolicy) }
            let before = stage.requests(for: url)

            let reader = try load(name, url, policy)
            let asked = stage.requests(for: url).dropFirst(before.count)
            stage.note("\(name), \(state): requests", asked.count)
            stage.note("\(name), \(state): version", reader.bytes)
            if asked.contains("no-cache") { stage.note("\(name), \(state): caches on the way were told", 1) }
            if reader.errorCode != 0 { stage.note("error", reader.errorCode) }
        }
    }
}
// end

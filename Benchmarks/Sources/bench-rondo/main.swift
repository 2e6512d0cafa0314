// Rondo, by the definitions of ../../README.md. On a thread of its own, since the main loop looks after the main queue too;
// but for `fds-main` and `load`.

import BenchmarkSupport
import Rondo

let peer = "rondo"

if argument(1, "") == "fds-main" {
    descriptors(argument(2, 9_900), active: argument(3, 100), events: argument(4, 1_000_000), "W3.fds.main")
    exit(0)
}
if argument(1, "") == "load" {
    loadOnce(argument(2, ""), isPlain: argument(3, "") == "plain")
    exit(0)
}
Thread.detachNewThread {
    switch argument(1, "") {
    case "churn": churn(argument(2, 1_000_000))
    case "cancel": cancel(argument(2, 1_000_000))
    case "repeat": repeating(argument(2, 10_000), seconds: argument(3, 3))
    case "perform": perform(argument(2, 1_000_000))
    case "pingpong": pingPong(argument(2, 200_000))
    case "pingpong-spin": pingPong(argument(2, 1_000_000), spinDuration: 50e-6)
    case "fds": descriptors(argument(2, 9_900), active: argument(3, 100), events: argument(4, 1_000_000))
    case "echo": echo(port: UInt16(argument(2, 0)))
    case "echo-streams": echoByStreams(port: UInt16(argument(2, 0)))
    case "get": get(argument(2, ""), requests: argument(3, 20_000), concurrency: argument(4, 64))
    case "get-spin":
        get(argument(2, ""), requests: argument(3, 20_000), concurrency: argument(4, 1), spinDuration: 50e-6)
    case "loops":
        getOnLoops(
            argument(2, ""), loops: argument(3, 8), requests: argument(4, 60_000), concurrency: argument(5, 8)
        )
    case "loops-part": getAsPart(argument(2, ""), requests: argument(3, 7_500), concurrency: argument(4, 8))
    case "processes":
        getInProcesses(
            argument(2, ""), count: argument(3, 8), requests: argument(4, 60_000), concurrency: argument(5, 8)
        )
    case "answer":
        answerRequests(
            once: argument(2, "kept") == "once", loops: argument(3, 1), certificate: argument(4, ""),
            key: argument(5, ""))
    case "session":
        getBySession(
            SessionWay(rawValue: argument(2, "loop")) ?? .loop, argument(3, ""),
            requests: argument(4, 20_000),
            concurrency: argument(5, 64))
    case "once": getOnce(argument(2, ""), requests: argument(3, 20_000), concurrency: argument(4, 16))
    case "bulk": bulk(argument(2, ""))
    case "save": save(SavingWay(rawValue: argument(2, "task")) ?? .task, argument(3, ""))
    case "request": makeRequest(argument(2, ""))
    case "crawl":
        crawl(
            argument(2, ""), pages: argument(3, 600), CrawlKind(rawValue: argument(4, "cold")) ?? .cold,
            home: CommandLine.arguments.count > 5 ? argument(5, "") : nil)
    case "cookies":
        cookies(
            CookieKind(rawValue: argument(2, "kept")) ?? .kept, argument(3, ""), home: argument(4, ""),
            repetitions: argument(5, 5))
    case "idle": idleStreams(port: argument(2, 7402), argument(3, 10_000))
    case "idle-http": idleRequests(argument(2, ""), argument(3, 4_000))
    case "pass": pass(argument(2, 10_000))
    case "children": children(argument(2, 2_000))
    case "process-children": processes(argument(2, 2_000))
    case "curve-timers": curveTimers(argument(2, 100))
    case "curve-sources": curveSources(argument(2, 100))
    case "curve-get": curveRequests(argument(3, ""), argument(2, 100))
    case "curve-modes": curveModes(argument(2, 100))
    default:
        print(
            "usage: bench-rondo churn|cancel|repeat|perform|pingpong|pingpong-spin|fds|fds-main|echo|echo-streams|get|get-spin|loops|processes|answer|"
                + "session|once|bulk|save|request|load|crawl|cookies|idle|idle-http|pass|children|process-children|curve-timers|curve-sources|curve-get|curve-modes …"
        )
        exit(2)
    }
    exit(0)
}
while true { sleep(1_000) }

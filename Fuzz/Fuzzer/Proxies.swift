import RondoHTTP
import RondoStreams

@testable import RondoConnections

/// What a proxy says, to each kind of question, as a channel hands it on: what was not taken comes again.
func readProxyAnswer(_ bytes: [UInt8], in lengths: [Int], kind: UInt8) -> Report {
    let user = kind & 1 != 0 ? "u" : nil
    let host = kind & 2 != 0 ? "192.0.2.1" : "host.example"
    let kinds: [StreamProxy.Kind] = [.socks5, .socks4, .httpConnect]
    let number = Int(kind >> 2) % 4
    let proxy = StreamProxy(
        kinds[number % 3], host: "proxy.example", port: 1080, userName: user, password: user)
    if number == 3 {
        let tunnel = TunnelNegotiation(
            by: proxy, toHost: host, port: 443, authorization: user.map { Array($0.utf8) })
        return negotiate(tunnel, bytes, in: lengths)
    }
    return negotiate(proxy.route(toHost: host, port: 443).negotiation, bytes, in: lengths)
}

private func negotiate(
    _ negotiation: any ProxyNegotiation, _ bytes: [UInt8], in lengths: [Int]
) -> Report {
    var (negotiation, report) = (negotiation, Report())
    var pieces = Pieces(bytes, in: lengths)
    var unread: [UInt8] = []
    /// - Returns: Whether it is over.
    func take(_ step: NegotiationStep, _ taken: Int) -> Bool {
        switch step {
        case .exchange(let said):
            report.body += said
            return false
        case .done(let said):
            report.body += said
            report.events.append("done after \(taken)")
        case .failed(let error):
            // What it would have sent before is of no interest any more.
            report.body = []
            report.events.append("\(error.kind) \(error.code) \(error.description)")
            if !error.response.isEmpty {
                report.events += readResponse(error.response, in: [error.response.count], toHead: true).events
            }
            // The load answers its challenge.
            if let head = TunnelNegotiation.challenge(in: .negotiation(error)) {
                report.events.append("\(head.status) \(head.fields)")
            }
        }
        return true
    }
    var taken = 0
    if take(negotiation.begin(), 0) { return report }
    while let piece = pieces.next() {
        unread += piece
        while !unread.isEmpty {
            var consumed = -1
            let step = unread.withUnsafeBytes { negotiation.receive($0, consumed: &consumed) }
            guard (0...unread.count).contains(consumed) else { fatalError("it took \(consumed)") }
            taken += consumed
            unread.removeFirst(consumed)
            if take(step, taken) { return report }
            if consumed == 0, case .exchange(let said) = step, said.isEmpty {
                fatalError("it neither takes what the proxy says nor answers")
            }
        }
    }
    let error = negotiation.receiveEnd()
    report.events.append("\(error.kind) \(error.code)")
    return report
}

import Rondo

/// The times that `-v` prints after a load, in milliseconds.
enum MetricsLines {
    static func text(for metrics: URLConnection.Metrics) -> String {
        metrics.transfers.map { transfer in
            var parts: [String] = []
            let span = { (name: String, from: TimeInterval?, to: TimeInterval?) in
                guard let from, let to else { return }
                parts.append("\(name) \(milliseconds(to - from))")
            }
            span("look-up", transfer.lookUpStart, transfer.lookUpEnd)
            span("connect", transfer.connectStart, transfer.connectEnd)
            span("TLS", transfer.secureStart, transfer.secureEnd)
            span("request", transfer.requestStart, transfer.requestEnd)
            span("first byte", transfer.requestEnd, transfer.responseStart)
            span("response", transfer.responseStart, transfer.responseEnd)
            let status = transfer.status.map(String.init) ?? "no response"
            return "* \(transfer.method) \(transfer.url.absoluteString): \(status); "
                + parts.joined(separator: ", ") + "\n"
        }.joined() + "* In all \(milliseconds(metrics.duration))\n"
    }

    private static func milliseconds(_ seconds: TimeInterval) -> String {
        "\((seconds * 1e5).rounded() / 100) ms"
    }
}

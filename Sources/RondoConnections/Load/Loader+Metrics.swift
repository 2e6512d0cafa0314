internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams

extension Loader {
    /// The exchange is over: what it took is kept for the end.
    func noteTransfer(_ exchange: any Exchange) {
        guard collectsMetrics, let url = state.lastSent.url else { return }
        let rare = madeRare
        guard rare.transfers.count < Self.maximumTransfers else { return }
        let record = exchange.record
        let times = record.times
        let start = startedAt
        let seconds = { (instant: LoopInstant?) in instant.map { $0.seconds(since: start) } }
        var transfer = URLConnection.Transfer(
            url: url, method: state.lastSent.method, status: record.status,
            address: record.address, isReusedConnection: record.isReusedConnection,
            proxy: exchange.key.proxy.map { "\($0.host):\($0.port)" }, tlsVersion: times.tls?.version,
            tlsCipher: times.tls?.cipher)
        transfer.isTLSResumed = times.isTLSResumed
        transfer.lookUpStart = seconds(times.lookUpStart)
        transfer.lookUpEnd = seconds(times.lookUpEnd)
        transfer.connectStart = seconds(times.connectStart)
        transfer.connectEnd = seconds(times.connectEnd)
        transfer.secureEnd = seconds(times.secureEnd)
        transfer.requestStart = seconds(times.requestStart)
        transfer.requestEnd = seconds(times.requestEnd)
        transfer.responseStart = seconds(times.responseStart)
        transfer.responseEnd = seconds(times.responseEnd ?? LoopClock.now)
        transfer.headBytesSent = record.headBytesSent
        transfer.bodyBytesSent = record.bodyBytesSent
        transfer.bytesReceived = times.bytesReceived
        transfer.bodyBytesReceived = record.bodyBytesReceived
        rare.transfers.append(transfer)
    }

    /// Somebody will be told.
    var collectsMetrics: Bool { delegateClass != nil && !spares(.didCollectMetrics) }

    /// Transfers that are remembered; a load has no more, unless its delegate answers challenges for ever.
    static var maximumTransfers: Int { 100 }

    var metrics: URLConnection.Metrics {
        URLConnection.Metrics(
            startDate: LoopClock.date(of: startedAt), duration: LoopClock.now.seconds(since: startedAt),
            redirectCount: state.redirectCount, transfers: rare?.transfers ?? [])
    }
}

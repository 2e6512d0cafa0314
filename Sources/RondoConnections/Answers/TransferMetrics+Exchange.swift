internal import RondoCore

extension TransferMetrics {
    /// The metrics of `exchange`, which has ended.
    init(of exchange: any Exchange, _ url: URL, _ method: String, since start: LoopInstant) {
        let record = exchange.record
        let times = record.times
        let seconds = { (instant: LoopInstant?) in instant.map { $0.seconds(since: start) } }
        self.init(
            url: url, method: method, status: record.status,
            address: record.address, isReusedConnection: record.isReusedConnection,
            proxy: exchange.key.proxy.map { "\($0.host):\($0.port)" }, tlsVersion: times.tls?.version,
            tlsCipher: times.tls?.cipher)
        connectionProtocolName = record.protocolName
        localAddress = times.localAddress
        isTLSResumed = times.isTLSResumed
        lookUpStart = seconds(times.lookUpStart)
        lookUpEnd = seconds(times.lookUpEnd)
        connectStart = seconds(times.connectStart)
        connectEnd = seconds(times.connectEnd)
        secureStart = seconds(times.secureStart)
        secureEnd = seconds(times.secureEnd)
        opened = seconds(times.opened)
        requestStart = seconds(times.requestStart)
        requestEnd = seconds(times.requestEnd)
        responseStart = seconds(times.responseStart)
        responseEnd = seconds(times.responseEnd ?? LoopClock.now)
        headBytesSent = record.headBytesSent
        bodyBytesSent = record.bodyBytesSent
        bytesReceived = times.bytesReceived
        bodyBytesReceived = record.bodyBytesReceived
    }
}

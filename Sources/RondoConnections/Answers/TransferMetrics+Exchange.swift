internal import RondoCore

extension TransferMetrics {
    /// What `exchange` took, which is over.
    init(of exchange: HTTPExchange, url: URL, since start: LoopInstant) {
        let times = exchange.times
        let seconds = { (instant: LoopInstant?) in instant.map { $0.seconds(since: start) } }
        self.init(
            url: url, method: exchange.loadRequest.method, status: exchange.status,
            address: exchange.link.channel.remoteAddress, isReusedConnection: exchange.link.isReused,
            proxy: exchange.link.key.proxy.map { "\($0.host):\($0.port)" }, tlsVersion: times.tls?.version,
            tlsCipher: times.tls?.cipher)
        isTLSResumed = times.isTLSResumed
        lookUpStart = seconds(times.lookUpStart)
        lookUpEnd = seconds(times.lookUpEnd)
        connectStart = seconds(times.connectStart)
        connectEnd = seconds(times.connectEnd)
        secureEnd = seconds(times.secureEnd)
        requestStart = seconds(times.requestStart)
        requestEnd = seconds(times.requestEnd)
        responseStart = seconds(times.responseStart)
        responseEnd = seconds(times.responseEnd ?? LoopClock.now)
        headBytesSent = exchange.headBytesSent
        bodyBytesSent = exchange.bodyBytesSent
        bytesReceived = times.bytesReceived
        bodyBytesReceived = exchange.bodyReceived
    }
}

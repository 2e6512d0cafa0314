internal import RondoCore
internal import RondoStreams

/// When the steps of an exchange were taken, and how much was received; for the metrics. An exchange whose metrics are not
/// wanted has none of it, and reads no clock for it.
///
/// Used inside the gate of the exchange's load.
final class ExchangeTimes {
    private(set) var lookUpStart: LoopInstant?
    private(set) var lookUpEnd: LoopInstant?
    private(set) var connectStart: LoopInstant?
    private(set) var connectEnd: LoopInstant?
    private(set) var secureEnd: LoopInstant?
    private(set) var requestStart: LoopInstant?
    private(set) var requestEnd: LoopInstant?
    private(set) var responseStart: LoopInstant?
    private(set) var responseEnd: LoopInstant?
    /// This machine's end of the connection, if times are wanted.
    private(set) var localAddress: SocketAddress?
    private(set) var tls: (version: String, cipher: String)?
    private(set) var isTLSResumed = false
    private(set) var bytesReceived: Int64 = 0

    /// A step of the opening of `channel` was taken.
    func note(_ event: ChannelEvent, of channel: SocketChannel) {
        switch event {
        case .resolving: lookUpStart = LoopClock.now
        case .connecting: beginConnecting()
        case .connected:
            connectEnd = LoopClock.now
            localAddress = channel.localAddress
        case .secured(let version, let cipher, _):
            secureEnd = LoopClock.now
            tls = (version, cipher)
            isTLSResumed = channel.isTLSResumed
        case .negotiating, .open, .readable, .writable, .failed: break
        }
    }

    /// A connection is attempted, perhaps after others.
    private func beginConnecting() {
        guard connectStart == nil else { return }
        connectStart = LoopClock.now
        if lookUpStart != nil { lookUpEnd = connectStart }
    }

    /// The exchange goes over `channel`, which was open before.
    func reuse(_ channel: SocketChannel) { localAddress = channel.localAddress }

    /// The request begins to go out over `channel`.
    func beginRequest(over channel: SocketChannel) {
        requestStart = LoopClock.now
        if tls == nil { tls = channel.tlsInformation.map { ($0.version, $0.cipherSuite) } }
    }

    /// The request is sent.
    func endRequest() { if requestEnd == nil { requestEnd = LoopClock.now } }

    /// The response is here, or the exchange has ended without it.
    func endResponse() { responseEnd = LoopClock.now }

    func received(_ count: Int) {
        bytesReceived += Int64(count)
        if responseStart == nil { responseStart = LoopClock.now }
    }
}

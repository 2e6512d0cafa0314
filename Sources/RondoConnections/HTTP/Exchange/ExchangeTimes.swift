internal import RondoCore
internal import RondoStreams

/// The times of an exchange's steps, and the number of bytes received, for the metrics. An exchange whose
/// metrics are not wanted does not have this object, and does not read the clock for it.
///
/// Used inside the gate of the exchange's load.
final class ExchangeTimes {
    private(set) var lookUpStart: LoopInstant?
    private(set) var lookUpEnd: LoopInstant?
    private(set) var connectStart: LoopInstant?
    private(set) var connectEnd: LoopInstant?
    /// The start of the last handshake of TLS: the server's, or the proxy's if there is no other.
    private(set) var secureStart: LoopInstant?
    private(set) var secureEnd: LoopInstant?
    /// A new connection was ready for the request.
    private(set) var opened: LoopInstant?
    private(set) var requestStart: LoopInstant?
    private(set) var requestEnd: LoopInstant?
    private(set) var responseStart: LoopInstant?
    private(set) var responseEnd: LoopInstant?
    /// The local address of the connection.
    private(set) var localAddress: SocketAddress?
    private(set) var tls: (version: String, cipher: String)?
    private(set) var isTLSResumed = false
    private(set) var bytesReceived: Int64 = 0

    /// Notes a step in the opening of `channel`.
    func note(_ event: ChannelEvent, of channel: SocketChannel) {
        switch event {
        case .resolving: lookUpStart = LoopClock.now
        case .connecting: beginConnecting()
        case .connected:
            connectEnd = LoopClock.now
            localAddress = channel.localAddress
        case .securing: (secureStart, secureEnd) = (LoopClock.now, nil)
        case .secured(let version, let cipher, _):
            secureEnd = LoopClock.now
            tls = (version, cipher)
            isTLSResumed = channel.isTLSResumed
        case .open: opened = LoopClock.now
        case .negotiating, .readable, .writable, .failed: break
        }
    }

    /// Notes the first connection attempt.
    private func beginConnecting() {
        guard connectStart == nil else { return }
        connectStart = LoopClock.now
        if lookUpStart != nil { lookUpEnd = connectStart }
    }

    /// Notes that the exchange uses `channel`, which was open before.
    func reuse(_ channel: SocketChannel) { localAddress = channel.localAddress }

    /// Notes that the request begins to be sent over `channel`.
    func beginRequest(over channel: SocketChannel) {
        requestStart = LoopClock.now
        if tls == nil { tls = channel.tlsInformation.map { ($0.version, $0.cipherSuite) } }
    }

    /// Notes that the request was sent.
    func endRequest() { if requestEnd == nil { requestEnd = LoopClock.now } }

    /// Notes that the response is complete, or that the exchange has ended without it.
    func endResponse() { responseEnd = LoopClock.now }

    func received(_ count: Int) {
        bytesReceived += Int64(count)
        if responseStart == nil { responseStart = LoopClock.now }
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The measurements of a load's requests, for its metrics: of its exchanges with servers, and of the answers
/// of the cache. A load whose metrics are not wanted does not have this object, and does not read the clock
/// for it.
///
/// Used inside the gate of its load.
final class LoadTransfers {
    /// The maximum of exchanges that are remembered, and that of answers by the cache. A load has more
    /// exchanges only if its delegate answers challenges for ever.
    static let maximum = 100

    /// One for each exchange, which has ended, and for each answer of the cache, in order.
    private(set) var all: [TransferMetrics] = []
    private var exchangeCount = 0
    private var cachedCount = 0
    /// The instant at which the load began.
    private let startedAt: LoopInstant
    /// The instant at which the current request to a server was begun.
    private var fetchStart: LoopInstant?
    /// The head of the server's response to the current request.
    private var head: (ResponseHead, bodyLength: Int64?)?

    init(since startedAt: LoopInstant) { self.startedAt = startedAt }

    /// Notes that a request to a server begins, or is sent again.
    func begin() { fetchStart = LoopClock.now }

    func received(_ head: ResponseHead, bodyLength: Int64?) { self.head = (head, bodyLength: bodyLength) }

    /// Notes that `exchange`, in which `request` was sent, has ended.
    func ended(_ exchange: any Exchange, of request: LoadRequest) {
        let head = head.take()
        guard exchangeCount < Self.maximum, let url = request.url else { return }
        exchangeCount += 1
        var transfer = TransferMetrics(of: exchange, url, request.method, since: startedAt)
        transfer.request = request.value
        transfer.head = head?.0
        transfer.bodyLength = head?.bodyLength
        transfer.fetchStart = fetchStart.map { $0.seconds(since: startedAt) }
        all.append(transfer)
    }

    /// Notes that a stored response answers `request`.
    func answeredFromCache(_ response: URLResponse, to request: LoadRequest) {
        guard cachedCount < Self.maximum, let url = request.url else { return }
        cachedCount += 1
        var transfer = TransferMetrics(
            url: url, method: request.method, status: (response as? HTTPURLResponse)?.statusCode,
            address: nil, isReusedConnection: false, proxy: nil, tlsVersion: nil, tlsCipher: nil)
        transfer.request = request.value
        transfer.isFromCache = true
        transfer.cachedResponse = response
        let now = LoopClock.now.seconds(since: startedAt)
        (transfer.fetchStart, transfer.responseStart, transfer.responseEnd) = (now, now, now)
        all.append(transfer)
    }
}

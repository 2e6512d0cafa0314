internal import RondoCore
internal import RondoHTTP

/// What the exchanges of a load with servers took, for its metrics. A load whose metrics are not wanted has none of it, and
/// reads no clock for it.
///
/// Used inside the gate of its load.
final class ServerTransfers {
    /// Exchanges that are remembered; a load has no more, unless its delegate answers challenges for ever.
    static let maximum = 100

    /// Those that are over, in order.
    private(set) var all: [TransferMetrics] = []
    /// When the load began.
    private let startedAt: LoopInstant
    /// When the request under way was begun with.
    private var fetchStart: LoopInstant?
    /// The head of its response.
    private var head: (ResponseHead, bodyLength: Int64?)?

    init(since startedAt: LoopInstant) { self.startedAt = startedAt }

    /// A request is begun with, or sent again.
    func begin() { fetchStart = LoopClock.now }

    func received(_ head: ResponseHead, bodyLength: Int64?) { self.head = (head, bodyLength: bodyLength) }

    /// `exchange`, in which `request` was sent, is over.
    func ended(_ exchange: any Exchange, of request: LoadRequest?) {
        let head = head.take()
        guard all.count < Self.maximum, let request, let url = request.url else { return }
        var transfer = TransferMetrics(of: exchange, url, request.method, since: startedAt)
        transfer.request = request.value
        transfer.head = head?.0
        transfer.bodyLength = head?.bodyLength
        transfer.fetchStart = fetchStart.map { $0.seconds(since: startedAt) }
        all.append(transfer)
    }
}

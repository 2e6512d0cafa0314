internal import RondoCore
internal import RondoHTTP

/// The measurements of a load's exchanges with servers, for its metrics. A load whose metrics are not wanted
/// does not have this object, and does not read the clock for it.
///
/// Used inside the gate of its load.
final class ServerTransfers {
    /// The maximum of exchanges that are remembered; a load has more only if its delegate answers challenges
    /// for ever.
    static let maximum = 100

    /// The exchanges that have ended, in order.
    private(set) var all: [TransferMetrics] = []
    /// The instant at which the load began.
    private let startedAt: LoopInstant
    /// The instant at which the current request was begun.
    private var fetchStart: LoopInstant?
    /// The head of the response to the current request.
    private var head: (ResponseHead, bodyLength: Int64?)?

    init(since startedAt: LoopInstant) { self.startedAt = startedAt }

    /// Notes that a request begins, or is sent again.
    func begin() { fetchStart = LoopClock.now }

    func received(_ head: ResponseHead, bodyLength: Int64?) { self.head = (head, bodyLength: bodyLength) }

    /// Notes that `exchange`, in which `request` was sent, has ended.
    func ended(_ exchange: any Exchange, of request: LoadRequest) {
        let head = head.take()
        guard all.count < Self.maximum, let url = request.url else { return }
        var transfer = TransferMetrics(of: exchange, url, request.method, since: startedAt)
        transfer.request = request.value
        transfer.head = head?.0
        transfer.bodyLength = head?.bodyLength
        transfer.fetchStart = fetchStart.map { $0.seconds(since: startedAt) }
        all.append(transfer)
    }
}

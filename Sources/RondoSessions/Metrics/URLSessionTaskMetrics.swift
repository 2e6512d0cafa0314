internal import FoundationNetworking
internal import RondoConnections
public import RondoCore

/// How long a task took, in all and for each of its requests (rules US-66 and US-67). A delegate gets it
/// before the last call.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its properties never change.

    /// Where a response came from. The raw values are Apple's.
    public enum ResourceFetchType: Int, Sendable {
        /// Never used here.
        case unknown = 0
        /// A server, or another answer that is not cached, gave the response.
        case networkLoad = 1
        /// Never used here.
        case serverPush = 2
        /// The cache gave the response.
        case localCache = 3
    }

    /// The protocol that looked up a name. The raw values are Apple's.
    public enum DomainResolutionProtocol: Int, Sendable {
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }

    private let interval: DateInterval
    private let redirects: Int
    private let transactions: [URLSessionTaskTransactionMetrics]

    /// From the creation of the task to its end.
    open var taskInterval: DateInterval { interval }
    /// The number of redirects that were followed.
    open var redirectCount: Int { redirects }
    /// One element for each request that was sent or begun, or that the cache answered: the first one, and
    /// those of redirects, challenges and repetitions, in order. At most 100 of them are of servers.
    open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

    init(_ values: LoadMetrics, createdAt: Date) {
        interval = DateInterval(start: createdAt, end: max(createdAt, Date()))
        redirects = values.redirectCount
        transactions = values.transfers.map {
            URLSessionTaskTransactionMetrics($0, since: values.startDate)
        }
        super.init()
    }

    /// Makes metrics without transactions. For classes that replace metrics in tests.
    @available(*, deprecated, message: "A task's delegate gets its metrics.")
    public override init() {
        interval = DateInterval(start: Date(), duration: 0)
        redirects = 0
        transactions = []
        super.init()
    }
}

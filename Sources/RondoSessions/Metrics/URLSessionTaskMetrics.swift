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

    /// From the creation of the task to its end.
    public let taskInterval: DateInterval
    /// The number of redirects that were followed.
    public let redirectCount: Int
    /// One element for each request that was sent or begun, or that the cache answered: the first one, and
    /// those of redirects, challenges and repetitions, in order. At most 100 of them are of servers.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]

    init(_ values: LoadMetrics, createdAt: Date) {
        taskInterval = DateInterval(start: createdAt, end: max(createdAt, Date()))
        redirectCount = values.redirectCount
        transactionMetrics = values.transfers.map {
            URLSessionTaskTransactionMetrics($0, since: values.startDate)
        }
        super.init()
    }
}

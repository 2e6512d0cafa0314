internal import FoundationNetworking
internal import RondoConnections
public import RondoCore

/// Where the time of a task went.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: nothing in it changes.

    /// Where a response came from; the numbers are Apple's.
    public enum ResourceFetchType: Int, Sendable {
        case unknown = 0
        case networkLoad = 1
        case serverPush = 2
        case localCache = 3
    }

    /// How a name was looked up; the numbers are Apple's.
    public enum DomainResolutionProtocol: Int, Sendable {
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }

    /// From when the task was made to its end.
    public let taskInterval: DateInterval
    /// Redirects that were followed.
    public let redirectCount: Int
    /// One for each request that was sent or begun, or that the cache has answered: redirects, challenges and repetitions
    /// among them. At most 100 of servers.
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

internal import FoundationNetworking
internal import RondoCore

/// What a load can do instead of failing when its answer has failed. `LoadDriver` begins it, and `LoadState`
/// takes it.
enum Recourse {
    case none
    /// A stored response stands in, although it is stale (RFC 5861 §4).
    case staleResponse(URLResponse, Data)
    /// The load waits for a network (rule US-70).
    case connectivity(ConnectivityWait)
    /// The rest of a download is requested.
    case rest(LoadRequest, RequestedRest)
}

internal import FoundationNetworking
internal import RondoCore

/// The step of a load whose answer has failed, in place of its own failure. `LoadDriver` begins it, and
/// `LoadState` takes it.
enum Recourse {
    /// There is none: the load fails.
    case none
    /// A stored response stands in, although it is stale (RFC 5861 §4).
    case staleResponse(URLResponse, Data)
    /// The load waits for a network (rule US-70).
    case connectivity(ConnectivityWait)
    /// The rest of a download is requested.
    case rest(LoadRequest, RequestedRest)
}

/// Why a load sends a request, which decides what may answer it.
enum SendReason {
    /// It is a new request, or the last one with a change: after a redirect, with a credential, without `Expect` after a 417, or
    /// for a whole file in place of a useless part. `LoadState` decides that. The cache, a protocol, or a server answers it.
    case anew
    /// It is the last request again, because the stored response does not fit the server's head (`LoadCache`), or because there
    /// may be a network again (`ConnectivityWait`). The cache is not asked again.
    case toServer
    /// It asks for the rest of a download, whose connection was lost (`DownloadTarget`).
    indirect case forRest(RequestedRest)

    // A kept connection that turns out to be dead is no reason of the load: `ServerAnswer` sends the same request over another
    // one, as `RetryRule` allows.
}

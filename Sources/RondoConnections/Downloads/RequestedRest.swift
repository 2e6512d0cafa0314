internal import RondoCore
internal import RondoHTTP

/// The rest of a download's body, which was requested because the connection was lost.
struct RequestedRest: Equatable {
    let resumption: DownloadResumption
    /// The failure of the load if the response is not the rest.
    let failure: LoadFailure

    /// Whether the response with this head is the rest.
    func isAnswered(by head: ResponseHead, bodyLength: Int64?, from url: URL?) -> Bool {
        guard head.status == 206, let url,
            let response = LoadedResponse(url: url, head: head, bodyLength: bodyLength)
        else { return false }
        return resumption.offset(of: response) == resumption.bytes
    }
}

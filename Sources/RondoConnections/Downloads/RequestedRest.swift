internal import RondoCore
internal import RondoHTTP

/// The rest of a download's body, which was requested because the connection was lost.
struct RequestedRest: Equatable {
    let resumption: DownloadResumption
    /// The failure of the load if the response is not the rest.
    let failure: LoadFailure

    /// The size of the whole file; nil if the response with this head is not the rest.
    func total(with head: ResponseHead, bodyLength: Int64?, from url: URL?) -> Int64? {
        guard head.status == 206, let url,
            let response = LoadedResponse(url: url, head: head, bodyLength: bodyLength),
            resumption.offset(of: response) == resumption.bytes
        else { return nil }
        return resumption.completed(by: response).total
    }
}

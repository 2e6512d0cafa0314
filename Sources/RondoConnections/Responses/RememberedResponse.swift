internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The response that was made last of what came over one connection, to be given again where the next one would be the same.
///
/// Foundation's initialiser spells every name of a field anew: of the six fields of a small response it takes some 4 µs, a
/// fifth of all that a GET on a kept connection takes. A server that is asked for the same thing again answers with the same
/// head until its clock shows another second.
struct RememberedResponse {
    private struct Made {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        var response: LoadedResponse
    }

    private var last: Made?

    var isEmpty: Bool { last == nil }

    /// The response to a request for `url`; nil where Foundation makes none of `head`.
    ///
    /// A response is given again only when no other reference to it is left. It never changes, so that a weak reference
    /// alone can tell.
    mutating func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        // Taken out, so that a reference to the response is not counted twice.
        if var known = last.take(), known.head === head, known.bodyLength == bodyLength, known.url == url,
            isKnownUniquelyReferenced(&known.response)
        {
            let response = known.response
            last = known
            return response
        }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        last =
            head.fields.size <= ResponseHead.maximumRemembered
            ? Made(url: url, head: head, bodyLength: bodyLength, response: made) : nil
        return made
    }
}

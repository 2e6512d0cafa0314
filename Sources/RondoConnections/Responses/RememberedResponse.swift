internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The last response that was made from a head. It is delivered again if the next one would be the same.
///
/// Foundation's initialiser normalises the name of every field: for the six fields of a small response it takes
/// twice as many instructions as everything else in a GET on a kept connection (bench-guard's http.request). A server
/// that is asked for the same thing again answers with the same head until its clock shows another second.
struct RememberedResponse {
    private final class Entry {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        private var response: LoadedResponse

        init(_ url: URL, _ head: ResponseHead, _ bodyLength: Int64?, _ response: LoadedResponse) {
            (self.url, self.head, self.bodyLength, self.response) = (url, head, bodyLength, response)
        }

        func isMade(of head: ResponseHead, for url: URL, bodyLength: Int64?) -> Bool {
            self.head === head && self.bodyLength == bodyLength && self.url == url
        }

        /// The response; nil while there is another reference to it.
        var unused: LoadedResponse? { isKnownUniquelyReferenced(&response) ? response : nil }
    }

    private var last: Entry?

    var isEmpty: Bool { last == nil }

    func isMade(of head: ResponseHead, for url: URL, bodyLength: Int64?) -> Bool {
        last?.isMade(of: head, for: url, bodyLength: bodyLength) ?? false
    }

    /// The last response, if no other reference to it is left. A response never changes, so only a weak
    /// reference could tell that it is delivered again.
    var unused: LoadedResponse? { last?.unused }

    /// The response to a request for `url`: the remembered one, or a new one, which is remembered in its
    /// place. Nil if Foundation cannot make one from `head`.
    mutating func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        if isMade(of: head, for: url, bodyLength: bodyLength), let unused { return unused }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        last =
            head.fields.size <= ResponseHead.maximumRemembered ? Entry(url, head, bodyLength, made) : nil
        return made
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The responses that the loads of a run loop got last, each with the head that it was made from. One is delivered again if
/// the next one would be the same.
///
/// Foundation's initialiser normalises the name of every field: for the six fields of a small response it takes
/// twice as many instructions as everything else in a GET on a kept connection (bench-guard's http.request). A server
/// that is asked for the same thing again answers with the same head until its clock shows another second.
///
/// Used on its loop's thread only.
final class RecentResponses {
    /// The maximum of responses; the one that was added first is forgotten. It is more than the connections that usually are in
    /// use at once, because each may have a response that the program still holds.
    static let maximum = 128

    private struct Entry {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        var response: LoadedResponse
    }

    private var recent = RecentValues<Entry>(maximum: maximum)

    /// The response to a request for `url`, from the memory of the calling thread's loop or a new one; nil if Foundation
    /// cannot make one from `head`.
    static func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        guard let memory = RunLoop.stored(RecentResponses.self, orMake: RecentResponses.init) else {
            return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
        }
        return memory.response(to: url, head, bodyLength: bodyLength)
    }

    func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        for index in recent.indices
        where recent[index].head === head && recent[index].bodyLength == bodyLength {
            // A response never changes, so only a weak reference could tell that it is delivered again. The URL comes last, since
            // comparing it takes longest.
            if isKnownUniquelyReferenced(&recent[index].response), recent[index].url == url {
                return recent[index].response
            }
        }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        if head.fields.size <= ResponseHead.maximumRemembered {
            recent.add(Entry(url: url, head: head, bodyLength: bodyLength, response: made))
        }
        return made
    }
}

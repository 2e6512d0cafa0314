internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The responses that the loads of a run loop got last, each with the head that it was made from. One is
/// delivered again if the next one would be the same.
///
/// Foundation's initialiser normalises the name of every field: for the six fields of a small response it
/// takes twice as many instructions as everything else in a GET on a kept connection (bench-guard's
/// http.request). A server that is asked for the same thing again answers with the same head until its clock
/// shows another second.
///
/// Used on its loop's thread only.
final class RecentResponses {
    /// The maximum of responses; the one that was added first is forgotten. It is more than the connections
    /// that usually are in use at once, because each may have a response that the program still holds.
    static let maximum = 128

    /// The maximum of URLs that a request's is compared with, the newest first. All pages of a server may
    /// have the same head, and a program that loads one after the other would compare each with all: for that
    /// a load took a fifth of its instructions (W14).
    static let maximumCompared = 8

    private struct Entry {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        var response: LoadedResponse
    }

    private var recent = RecentValues<Entry>(maximum: maximum)

    /// The response to a request for `url`, from the memory of the calling thread's loop or a new one; nil if
    /// Foundation cannot make one from `head`.
    static func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        guard let memory = RunLoop.stored(RecentResponses.self, orMake: RecentResponses.init) else {
            return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
        }
        return memory.response(to: url, head, bodyLength: bodyLength)
    }

    func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        Self.response(to: url, head, bodyLength, in: &recent)
    }

    /// One access to the property, in place of one for each use.
    private static func response(
        to url: URL, _ head: ResponseHead, _ bodyLength: Int64?, in recent: inout RecentValues<Entry>
    ) -> LoadedResponse? {
        var left = maximumCompared
        for index in recent.newestFirst
        where recent[index].head === head && recent[index].bodyLength == bodyLength {
            // Responses are immutable: a program can notice that one is delivered again only by a weak
            // reference to it. The URL comes last, since comparing it takes longest.
            guard isKnownUniquelyReferenced(&recent[index].response) else { continue }
            if recent[index].url == url { return recent[index].response }
            left -= 1
            if left == 0 { break }
        }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        if head.fields.size <= ResponseHead.maximumRemembered {
            recent.add(Entry(url: url, head: head, bodyLength: bodyLength, response: made))
        }
        return made
    }
}

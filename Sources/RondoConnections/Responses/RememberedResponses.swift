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
final class RememberedResponses {
    /// The maximum of responses; the one that was added first is forgotten.
    static let maximum = 32

    private struct Entry {
        let url: URL
        let head: ResponseHead
        let bodyLength: Int64?
        var response: LoadedResponse

        func isMade(of head: ResponseHead, for url: URL, bodyLength: Int64?) -> Bool {
            self.head === head && self.bodyLength == bodyLength && self.url == url
        }
    }

    private var entries: [Entry] = []
    private var next = 0

    /// The response to a request for `url`, from the memory of the calling thread's loop or a new one; nil if Foundation
    /// cannot make one from `head`.
    static func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        guard let memory = RunLoop.stored(RememberedResponses.self, orMake: RememberedResponses.init) else {
            return LoadedResponse(url: url, head: head, bodyLength: bodyLength)
        }
        return memory.response(to: url, head, bodyLength: bodyLength)
    }

    func response(to url: URL, _ head: ResponseHead, bodyLength: Int64?) -> LoadedResponse? {
        for index in entries.indices where entries[index].isMade(of: head, for: url, bodyLength: bodyLength) {
            // A response never changes, so only a weak reference could tell that it is delivered again.
            if isKnownUniquelyReferenced(&entries[index].response) { return entries[index].response }
        }
        guard let made = LoadedResponse(url: url, head: head, bodyLength: bodyLength) else { return nil }
        if head.fields.size <= ResponseHead.maximumRemembered {
            insert(Entry(url: url, head: head, bodyLength: bodyLength, response: made))
        }
        return made
    }

    private func insert(_ new: Entry) {
        if entries.count < Self.maximum { return entries.append(new) }
        entries[next] = new
        next = (next + 1) % Self.maximum
    }
}

internal import FoundationNetworking
internal import RondoCore

/// The answer with content of this machine: a response of the cache, a file, or a `data:` URL.
///
/// It delivers piece by piece, and stops while the load takes no more.
final class LocalAnswer: Answer {
    private let response: URLResponse
    /// Returns the next piece of the content; nil at the end.
    private let next: () throws(LoadFailure) -> Data?
    private let release: () -> Void
    /// Whether it delivers one piece in each pass, so that the loop can serve other sources in between.
    private let isInPasses: Bool
    private var isOver = false
    private unowned let owner: any AnswerOwner

    /// Answers with a response of a cache.
    init(_ response: URLResponse, _ content: Data, for owner: any AnswerOwner) {
        var content = content.isEmpty ? nil : content
        self.response = response
        self.owner = owner
        next = { content.take() }
        release = {}
        isInPasses = false
    }

    /// Answers with a file, or the content of a `data:` URL.
    init(_ content: LocalContent, for owner: any AnswerOwner) {
        response = content.response
        self.owner = owner
        next = { () throws(LoadFailure) in try content.next() }
        release = { content.close() }
        isInPasses = true
    }

    /// The content is here already.
    func start(_ request: AnswerRequest) {
        owner.received(.response(response, nil))
        if isInPasses { owner.wakeUp() } else { serve() }
    }

    func serve() {
        while !isOver, owner.mayRead {
            do throws(LoadFailure) {
                let piece = try next()
                guard let piece else {
                    isOver = true
                    return owner.received(.end)
                }
                owner.received(.content(piece))
            } catch {
                isOver = true
                return owner.received(.failed(error))
            }
            if isInPasses { return isOver ? () : owner.wakeUp() }
        }
    }

    func cancel() {
        isOver = true
        release()
    }

    var waitsLocally: Bool { true }
}

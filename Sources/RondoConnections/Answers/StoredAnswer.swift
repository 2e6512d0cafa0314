internal import FoundationNetworking
internal import RondoCore

/// An answer that is here already: of the cache, of a file, or of a URL that is its own content.
///
/// It gives a piece in each step, and stops where the load takes no more.
final class StoredAnswer: Answer {
    private let response: URLResponse
    /// The next piece of the content; nil: there is no more.
    private let next: () throws(LoadFailure) -> Data?
    private let release: () -> Void
    /// Pieces for each pass: other sources of the loop want theirs.
    private let isInPasses: Bool
    private var isOver = false
    private unowned let owner: any AnswerOwner

    /// What a cache has kept.
    init(_ response: URLResponse, _ content: Data, for owner: any AnswerOwner) {
        var content = content.isEmpty ? nil : content
        self.response = response
        self.owner = owner
        next = { content.take() }
        release = {}
        isInPasses = false
    }

    /// A file, or a URL that is its own content.
    init(_ content: LocalContent, for owner: any AnswerOwner) {
        response = content.response
        self.owner = owner
        next = { () throws(LoadFailure) in try content.next() }
        release = { content.close() }
        isInPasses = true
    }

    func start() {
        owner.received(.response(response, nil))
        if isInPasses { owner.wakeUp() } else { serve() }
    }

    func serve() {
        while !isOver, owner.takesMore {
            do throws(LoadFailure) {
                let piece = try next()
                owner.noteProgress()
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

    // The content waits where it is.
    func pause() {}
    func resume() {}
    func challengeHandled(_ handling: DelegateCall.ChallengeHandling) {}

    func cancel() {
        isOver = true
        release()
    }

    var isWaitingLocally: Bool { true }
}

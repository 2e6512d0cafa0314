internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The body of a load's requests where it is a stream. It outlives a request, which may have to be sent again.
///
/// Used inside the gate of its load; only `wakeUp` is called from elsewhere.
final class RequestBody {
    /// What hashing a piece has come to.
    enum Hashing {
        /// All wanted hashes are there.
        case done
        /// The next pass goes on.
        case more
        /// The stream has nothing at present.
        case notReady
        case failed(LoadFailure)
    }

    private let schedule: [LoopMode]
    private let defaults: DelegateDefaults?
    private let wakeUp: @Sendable () -> Void
    private var stream: BodyStream?
    private var timer: ScheduleTimer?

    /// - Parameter wakeUp: Called on any thread when the stream is worth another look.
    init(
        in schedule: [LoopMode], defaults: DelegateDefaults?, wakeUp: @escaping @Sendable () -> Void
    ) {
        self.schedule = schedule
        self.defaults = defaults
        self.wakeUp = wakeUp
    }

    /// The body of the next request, whose stream is `origin`; nil: the delegate has to give a new stream, since this one
    /// was read, or there is none yet.
    func prepare(_ origin: Foundation.InputStream) -> BodyStream? {
        let current = stream.flatMap { $0.origin === origin ? $0 : nil }
        if let current, current.isUntouched { return current }
        if let file = origin as? FileBodyStream { return use(file.reopened(), of: origin) }
        return current != nil || origin is AwaitedBodyStream ? nil : use(origin, of: origin)
    }

    /// Takes the delegate's reply; `.none` if it has no method that gives a stream.
    ///
    /// Whether a delegate has the method is known only once it was called, and it may be called only where it is due.
    /// So the bytes that were sent are kept until a delegate of that class was found to have the method (rules UC-39 and
    /// UC-40).
    ///
    /// - Returns: Nil: there is no body to send.
    func replace(by reply: Foundation.InputStream??, of origin: Foundation.InputStream) -> BodyStream? {
        guard let reply else {
            guard let stream, stream.rewind() else { return nil }
            return stream
        }
        defaults?.noteBodyStreamMethod()
        return reply.map { use($0, of: origin) }
    }

    private func use(_ new: Foundation.InputStream, of origin: Foundation.InputStream) -> BodyStream {
        close()
        // A file can be read again; and what the delegate is asked for each time need not be kept.
        let isThereAgain = origin is FileBodyStream || origin is AwaitedBodyStream
        let keeps = !isThereAgain && !(defaults?.hasBodyStreamMethod ?? false)
        let body = BodyStream(new, of: origin, keeps: keeps, onReady: wakeUp)
        stream = body
        return body
    }

    /// Hashes a piece, as much as may be read in a pass.
    func hash(by hashes: [DigestHash]) -> Hashing {
        guard let stream, let wanted = hashes.first(where: { stream.digests[$0] == nil }) else {
            return .done
        }
        var piece = [UInt8](repeating: 0, count: RequestSender.pieceSize)
        for _ in 0..<RequestSender.maximumPerPass / piece.count {
            switch stream.hash(by: wanted, piece: &piece) {
            case .done: return .more
            case .more: break
            case .notReady: return .notReady
            case .failed(let error): return .failed(.bodyStreamFailed(error as NSError))
            case .lost: return .failed(.bodyStreamMissing)
            }
        }
        return .more
    }

    /// The stream has nothing to send yet: a stream that does not tell when it has is asked again after a while.
    func waitForBytes() {
        guard let stream, stream.mustBePolled else { return }
        timer?.invalidate()
        timer = ScheduleTimer(schedule, after: BodyStream.pollInterval, repeats: false) { [wakeUp] _ in
            wakeUp()
        }
    }

    /// It is needed no more.
    func close() {
        timer.take()?.invalidate()
        stream.take()?.close()
    }
}

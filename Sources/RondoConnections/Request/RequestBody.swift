internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The body of a load's requests, if it is a stream. It outlives a request, because that may have to be sent
/// again.
///
/// Used inside the gate of its load; only `wakeUp` is called from elsewhere.
final class RequestBody {
    /// The bytes of a body that are handed on at once: progress is reported after each piece.
    static let pieceSize = 128 * 1024
    /// The maximum of a body's bytes that are sent or hashed in one pass, so that the loop can serve others.
    static let maximumPerPass = 1024 * 1024

    /// The result of hashing a piece.
    enum Hashing {
        /// All hashes that were asked for are known.
        case done
        /// There is more to hash in the next pass.
        case more
        /// The stream has no bytes at present.
        case notReady
        case failed(LoadFailure)
    }

    private let modes: [LoopMode]
    private let defaults: DelegateDefaults?
    private let wakeUp: @Sendable () -> Void
    /// The body of the request that was prepared last; nil after `close()`.
    private(set) var stream: BodyStream?
    private var timer: ScheduleTimer?

    /// - Parameter wakeUp: Called on any thread when it is worth reading the stream again.
    init(
        in modes: [LoopMode], defaults: DelegateDefaults?, wakeUp: @escaping @Sendable () -> Void
    ) {
        self.modes = modes
        self.defaults = defaults
        self.wakeUp = wakeUp
    }

    /// Prepares the body of the next request, whose stream is `origin`.
    ///
    /// - Returns: False if the delegate has to give a new stream, since this one was read, or there is none
    ///   yet.
    func prepare(_ origin: Foundation.InputStream) -> Bool {
        let current = stream.flatMap { $0.origin === origin ? $0 : nil }
        if let current, current.isUntouched { return true }
        if let again = Self.reopened(origin) {
            use(again, of: origin)
        } else if current != nil || origin is AwaitedBodyStream {
            return false
        } else {
            use(origin, of: origin)
        }
        return true
    }

    /// A new stream of a file or a form, from its start; nil for other streams.
    private static func reopened(_ origin: Foundation.InputStream) -> Foundation.InputStream? {
        switch origin {
        case let file as FileBodyStream: file.reopened()
        case let form as FormStream: form.reopened()
        default: nil
        }
    }

    /// Takes the delegate's reply; `.none` if the delegate does not implement the method for streams.
    ///
    /// Whether a delegate implements the method is known only after a call, and it may be called only when a
    /// stream is needed. So the bytes that were sent are kept until a delegate of the class was found to
    /// implement it (rules UC-39 and UC-40).
    ///
    /// - Returns: False if there is no body to send.
    func replace(by reply: Foundation.InputStream??, of origin: Foundation.InputStream) -> Bool {
        guard let reply else { return stream?.rewind() ?? false }
        defaults?.noteBodyStreamMethod()
        guard let new = reply else { return false }
        use(new, of: origin)
        return true
    }

    private func use(_ new: Foundation.InputStream, of origin: Foundation.InputStream) {
        close()
        // Bytes need not be kept if files can be read again, or the delegate is asked for a stream each time.
        let isThereAgain = origin is FileBodyStream || origin is FormStream || origin is AwaitedBodyStream
        let keeps = !isThereAgain && !(defaults?.hasBodyStreamMethod ?? false)
        stream = BodyStream(new, of: origin, keeps: keeps, onReady: wakeUp)
    }

    /// Hashes as much as may be read in a pass.
    func hash(by hashes: [DigestHash]) -> Hashing {
        guard let stream, let wanted = hashes.first(where: { stream.digests[$0] == nil }) else {
            return .done
        }
        var piece = [UInt8](repeating: 0, count: Self.pieceSize)
        for _ in 0..<Self.maximumPerPass / piece.count {
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

    /// Waits for a stream that has no bytes yet: if it does not report when it has some, it is polled after a
    /// while.
    func waitForBytes() {
        guard let stream, stream.mustBePolled else { return }
        timer?.invalidate()
        timer = ScheduleTimer(modes, after: BodyStream.pollInterval, repeats: false) { [wakeUp] _ in
            wakeUp()
        }
    }

    /// Releases the stream when it is not needed any more.
    func close() {
        timer.take()?.invalidate()
        stream.take()?.close()
    }
}

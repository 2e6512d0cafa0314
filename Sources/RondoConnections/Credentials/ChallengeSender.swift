internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// What was answered to a challenge.
///
/// `@unchecked Sendable`: a credential never changes, and is handed over once.
enum ChallengeResponse: @unchecked Sendable {
    case use(URLCredential)
    case continueWithout
    /// With the challenge, for the delegate's older method.
    case cancel(URLAuthenticationChallenge)
    case performDefaultHandling
    case rejectProtectionSpace
}

/// Takes the answer to a challenge, from any thread; the first one counts (rule UC-47).
///
/// Foundation's `URLAuthenticationChallengeSender`. A challenge that is let go without an answer gets the
/// default handling, or its load would wait for ever.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    private let take: Mutex<(@Sendable (ChallengeResponse) -> Void)?>

    init(take: @escaping @Sendable (ChallengeResponse) -> Void) {
        self.take = Mutex(take)
    }

    deinit { answer(.performDefaultHandling) }

    private func answer(_ response: ChallengeResponse) {
        let take = take.withLock { take in
            defer { take = nil }
            return take
        }
        take?(response)
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        answer(.use(credential))
    }

    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { answer(.continueWithout) }
    func cancel(_ challenge: URLAuthenticationChallenge) { answer(.cancel(challenge)) }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { answer(.performDefaultHandling) }

    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        answer(.rejectProtectionSpace)
    }
}

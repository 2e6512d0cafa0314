internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// A decision about a challenge: Apple's `AuthChallengeDisposition`, with the credential.
///
/// `@unchecked Sendable`: a credential never changes, and it is handed over once.
enum ChallengeDisposition: @unchecked Sendable {
    case use(URLCredential)
    case continueWithout
    /// The value is the challenge, which the delegate's older method for cancelled challenges gets.
    case cancel(URLAuthenticationChallenge)
    case performDefaultHandling
    case rejectProtectionSpace
}

/// The receiver of the decision about a challenge, from any thread; the first decision counts (rule UC-47).
///
/// Foundation's `URLAuthenticationChallengeSender`. A challenge that is released without a decision gets the
/// default handling; otherwise its load would wait for ever.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    private let take: Mutex<(@Sendable (ChallengeDisposition) -> Void)?>

    init(take: @escaping @Sendable (ChallengeDisposition) -> Void) {
        self.take = Mutex(take)
    }

    deinit { decide(.performDefaultHandling) }

    private func decide(_ disposition: ChallengeDisposition) {
        let take = take.withLock { take in
            defer { take = nil }
            return take
        }
        take?(disposition)
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        decide(.use(credential))
    }

    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { decide(.continueWithout) }
    func cancel(_ challenge: URLAuthenticationChallenge) { decide(.cancel(challenge)) }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { decide(.performDefaultHandling) }

    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        decide(.rejectProtectionSpace)
    }
}

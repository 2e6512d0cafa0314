public import FoundationNetworking
public import RondoCore
public import RondoStreams

// What Foundation lacks on Linux for challenges of TLS: the names of their methods, and somewhere for their
// questions and decisions to stand. The names are Apple's, and so is what they are for.

/// Whether to trust the server: the protection space has a `serverTrust`.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// Which certificate of ours to show: the protection space has an `identityRequest`.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// A space whose question is one of TLS.
final class TLSProtectionSpace: URLProtectionSpace, @unchecked Sendable {
    // `@unchecked` as its superclass is: nothing in it changes after it was made.
    enum Question {
        case trust(TLSTrust)
        case identity(TLSIdentityRequest)
    }

    let question: Question

    init(_ question: Question, host: String, port: Int) {
        self.question = question
        let method =
            switch question {
            case .trust: NSURLAuthenticationMethodServerTrust
            case .identity: NSURLAuthenticationMethodClientCertificate
            }
        super.init(host: host, port: port, protocol: "https", realm: nil, authenticationMethod: method)
    }

    override var authenticationMethod: String {
        switch question {
        case .trust: NSURLAuthenticationMethodServerTrust
        case .identity: NSURLAuthenticationMethodClientCertificate
        }
    }
}

extension URLProtectionSpace {
    /// What the server has shown, where the method is `NSURLAuthenticationMethodServerTrust`.
    ///
    /// Decide by the challenge's sender; the object's own methods do the same.
    public var serverTrust: TLSTrust? {
        if case .trust(let trust) = (self as? TLSProtectionSpace)?.question { trust } else { nil }
    }

    /// Whom the server accepts, where the method is `NSURLAuthenticationMethodClientCertificate`.
    public var identityRequest: TLSIdentityRequest? {
        if case .identity(let request) = (self as? TLSProtectionSpace)?.question { request } else { nil }
    }

    /// The authorities that the server accepts, in DER form; nil for other methods. Empty: it does not say.
    public var distinguishedNames: [Data]? { identityRequest?.encodedIssuers }
}

extension URLCredential {
    /// The server is to be trusted, whatever is wrong with its certificates: the credential for a challenge whose
    /// method is `NSURLAuthenticationMethodServerTrust`. A credential of another kind is none to that, and
    /// leaves it to the settings.
    public convenience init(trust: TLSTrust) {
        self.init(user: Self.trustMark, password: "", persistence: .none)
    }

    /// No user is called so.
    private static let trustMark = "trust \(UUID().uuidString)"

    var isTrust: Bool { user == Self.trustMark }
}

/// An identity as a credential, for a challenge whose method is
/// `NSURLAuthenticationMethodClientCertificate`, as Apple's
/// `URLCredential(identity:certificates:persistence:)`.
public final class TLSCredential: URLCredential, @unchecked Sendable {
    // `@unchecked` as its superclass is: nothing in it changes after it was made.
    let identity: TLSIdentity

    public init(identity: TLSIdentity) {
        self.identity = identity
        super.init(user: "", password: "", persistence: .none)
    }

    public required init?(coder: NSCoder) {
        // A private key is not for archives.
        nil
    }
}

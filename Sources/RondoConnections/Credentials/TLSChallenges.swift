public import FoundationNetworking
public import RondoCore
public import RondoStreams

// Additions for TLS challenges that Foundation lacks on Linux: the names of their methods, and properties for
// their questions and answers. The names and their meaning are Apple's.

/// The method that asks whether to trust the server: the protection space has a `serverTrust`.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// The method that asks which client certificate to send: the protection space has an `identityRequest`.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// A protection space with a question of TLS.
final class TLSProtectionSpace: URLProtectionSpace, @unchecked Sendable {
    // `@unchecked` as the superclass is: nothing in it changes after initialisation.
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
    /// The server's certificates, if the method is `NSURLAuthenticationMethodServerTrust`.
    ///
    /// Decide by the challenge's sender; the object's own methods do the same.
    public var serverTrust: TLSTrust? {
        if case .trust(let trust) = (self as? TLSProtectionSpace)?.question { trust } else { nil }
    }

    /// The server's request, if the method is `NSURLAuthenticationMethodClientCertificate`.
    public var identityRequest: TLSIdentityRequest? {
        if case .identity(let request) = (self as? TLSProtectionSpace)?.question { request } else { nil }
    }

    /// The names of the authorities that the server accepts, in DER form; empty if the server names none, nil
    /// for other methods.
    public var distinguishedNames: [Data]? { identityRequest?.encodedIssuers }
}

extension URLCredential {
    /// Makes a credential that trusts the server in spite of all problems with its certificates, for a
    /// challenge whose method is `NSURLAuthenticationMethodServerTrust`. If such a challenge gets a
    /// credential of another kind, the TLS settings decide.
    public convenience init(trust: TLSTrust) {
        self.init(user: Self.trustMark, password: "", persistence: .none)
    }

    /// The user name by which a trust credential is recognized; no real user has it.
    private static let trustMark = "trust \(UUID().uuidString)"

    var isTrust: Bool { user == Self.trustMark }
}

/// A credential that contains an identity, for a challenge whose method is
/// `NSURLAuthenticationMethodClientCertificate`. The counterpart is Apple's
/// `URLCredential(identity:certificates:persistence:)`.
public final class TLSCredential: URLCredential, @unchecked Sendable {
    // `@unchecked` as the superclass is: nothing in it changes after initialisation.
    let identity: TLSIdentity

    public init(identity: TLSIdentity) {
        self.identity = identity
        super.init(user: "", password: "", persistence: .none)
    }

    public required init?(coder: NSCoder) {
        // A private key must not be archived.
        nil
    }
}

internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// A load's access to the cookies of its `HTTPCookieStorage`. They are chosen and kept by the rules of RFC
/// 6265, not by Foundation's, which ignore paths, Secure and public suffixes (rule UC-57).
struct CookieJar {
    let store: CookieStore
    /// Whether cookies of the store are sent.
    var sends = true
    /// Which cookies are kept; nil to use the storage's policy.
    var policy: HTTPCookie.AcceptPolicy?

    // MARK: Sending

    /// Asks for the cookies of `request`. If they cannot be read at once, another thread calls the result of
    /// `tell` when they can.
    ///
    /// - Returns: Whether they can be read at once, or are not needed.
    func prepare(for request: LoadRequest, orTell tell: () -> @Sendable () -> Void) -> Bool {
        guard request.address != nil, request.handlesCookies else { return true }
        return store.prepareReading(orTell: tell)
    }

    /// Adds the cookies of the store to the Cookie field of `request`.
    ///
    /// The program's own cookies, of the request and of the settings, come first; no cookie with one of their
    /// names is added. All are in one field (RFC 6265 §5.4).
    /// - Parameter fields: The fields that the program sends.
    func setField(for request: LoadRequest, in fields: inout HeaderFields) {
        guard request.handlesCookies else { return }
        var cookies = sends ? store.readCookies(for: Self.origin(of: request)) : []
        let own = fields.values(for: "Cookie")
        if !own.isEmpty, !cookies.isEmpty {
            let names = Set(
                own.flatMap { $0.split(separator: ";") }.compactMap {
                    $0.split(separator: "=", omittingEmptySubsequences: false).first?
                        .trimmingCharacters(in: .whitespaces)
                })
            cookies.removeAll { names.contains($0.name) }
        }
        if cookies.isEmpty, own.count < 2 { return }
        let pairs = own + cookies.map { "\($0.name)=\($0.value)" }
        fields.set(name: "Cookie", value: pairs.joined(separator: "; "))
    }

    // MARK: Receiving

    /// Keeps the cookies that a response to `request` sets, as far as the storage's policy allows.
    ///
    /// - Parameter tell: Its result is called by another thread when the program can see the cookies in its
    ///   storage.
    /// - Returns: Whether that call will come.
    func receive(
        _ fields: HeaderFields, for request: LoadRequest, tell: () -> @Sendable () -> Void
    ) -> Bool {
        guard request.handlesCookies, let origin = Self.origin(of: request),
            isAccepted(from: origin, request.value)
        else { return false }
        // If a response sets more cookies than a domain may have, the first ones would be removed again.
        let texts = SetCookie.values(in: fields).suffix(CookieRules.maximumPerDomain)
        return store.receive(texts, from: origin, tell: tell)
    }

    private func isAccepted(from origin: CookieOrigin, _ request: URLRequest) -> Bool {
        switch policy ?? store.visible.policy {
        case .always: return true
        case .never: return false
        case .onlyFromMainDocumentDomain:
            // Without a main document the request itself counts as the main document.
            guard let main = request.mainDocumentURL?.host?.lowercased() else { return true }
            return CookieRules.domainMatches(main, origin.host)
                || CookieRules.domainMatches(origin.host, main)
        @unknown default: return false
        }
    }

    private static func origin(of request: LoadRequest) -> CookieOrigin? {
        guard let url = request.url else { return nil }
        if let address = request.address, address.isPlain {
            let query = address.target.utf8.firstIndex(of: UInt8(ascii: "?"))
            return CookieOrigin(
                host: address.host, path: query.map { String(address.target[..<$0]) } ?? address.target,
                isSecure: address.isSecure)
        }
        guard let host = url.host, !host.isEmpty else { return nil }
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? "/"
        return CookieOrigin(host: host, path: path, isSecure: url.scheme?.lowercased() == "https")
    }
}

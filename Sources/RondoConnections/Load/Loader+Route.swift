internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

// The way to a server: directly, or by a proxy. An http proxy is handed http requests whole (absolute-form,
// RFC 9112 §3.2.2) and makes a tunnel for https (RFC 9110 §9.3.6); a SOCKS proxy makes a tunnel for both. An https
// proxy is an http proxy that is spoken to by TLS, which the tunnel then goes through: TLS inside of TLS.

extension Loader {
    /// The proxy for `address`; nil: none.
    func proxy(
        for address: WebAddress, _ choice: URLConnection.ProxyChoice
    ) throws(LoadFailure) -> StreamProxy? {
        switch choice {
        case .direct: return nil
        case .by(let proxy): return proxy
        case .environment:
            do throws(ProxyEnvironment.Failure) {
                return try ProxyEnvironment.process.proxy(
                    scheme: address.isSecure ? "https" : "http", host: address.host, port: address.port)
            } catch {
                switch error {
                case .unsupported(let text): throw .unsupportedProxy(text)
                }
            }
        }
    }

    func route(to address: WebAddress) throws(LoadFailure) -> Route {
        let atOrigin = !settings.isForOneOrigin || state.isAtOrigin(address)
        if settings.isDirect { return settings.directRoute(to: address, atOrigin: atOrigin) }
        let proxy = try proxy(for: address, settings.values.proxy)
        if proxy != nil || rare != nil { madeRare.proxy = proxy }
        guard let proxy else { return settings.directRoute(to: address, atOrigin: atOrigin) }
        let (host, port) = (address.host, address.port)
        let tls = address.isSecure ? settings.tls(atOrigin: atOrigin) : nil
        if proxy.kind == .httpConnect, !address.isSecure {
            return Route(
                ConnectionKey(host: proxy.host, port: proxy.port, tls: proxy.tls, proxy: proxy),
                channel: .init(host: proxy.host, port: proxy.port, tls: proxy.tls), isForProxy: true)
        }
        var route = proxy.route(toHost: host, port: port)
        if proxy.kind == .httpConnect {
            // A CONNECT has no body.
            let authorization = proxyAuthorization(method: "CONNECT", target: "\(host):\(port)") {
                $0.hexadecimal(of: "")
            }
            route.negotiation = TunnelNegotiation(
                by: proxy, toHost: host, port: port, authorization: authorization,
                proof: madeRare.proxyAuthentication.proof)
        }
        return Route(
            ConnectionKey(host: host, port: port, tls: tls, proxy: proxy),
            channel: .init(host: host, port: port, tls: tls, route: route))
    }

    /// The value of Proxy-Authorization: what answered a challenge, or what the proxy's URL holds.
    func proxyAuthorization(
        method: String, target: String, bodyHash: (DigestHash) -> String?
    ) -> String? {
        guard let rare else { return nil }
        if !rare.proxyAuthentication.isIdle {
            return rare.proxyAuthentication.fieldValue(method: method, target: target, bodyHash: bodyHash)
        }
        guard let proxy = rare.proxy, let user = proxy.userName, !rare.hasProxyCredentialFailed else {
            return nil
        }
        do throws(BasicAuthentication.Failure) {
            return try BasicAuthentication(user: user, password: proxy.password ?? "").fieldValue
        } catch {
            tellOfProblem(error.description)
            return nil
        }
    }

    /// A proxy has answered CONNECT with a challenge; nil if that is not what has failed.
    static func challenge(in failure: LoadFailure) -> ResponseHead? {
        guard case .channel(.negotiation(let error)) = failure, error.code == 407, !error.response.isEmpty
        else { return nil }
        var codec = HTTP1Connection()
        var request: [UInt8] = []
        do throws(HTTP1Error) {
            let fields = HeaderFields([("Host", "proxy")])
            try codec.send(
                head: RequestHead(method: "CONNECT", target: "proxy:443", fields: fields), body: .none,
                into: &request)
            codec.receive(error.response)
            while true {
                switch try codec.nextEvent() {
                case .informational: continue
                case .response(let head, _): return head
                default: return nil
                }
            }
        } catch {
            // What cannot be read asks for nothing; the failure stays what it is.
            return nil
        }
    }
}

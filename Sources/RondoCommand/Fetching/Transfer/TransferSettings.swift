import Rondo
import RondoConnections
import RondoHTTP
import RondoStreams

// The settings of an operation in the library's types.
extension FetchOperation {
    /// The proxy for `url`; nil if there is none.
    ///
    /// - Throws: `FetchFailure` if the proxy cannot be used.
    func proxy(for url: FetchURL) throws(FetchFailure) -> StreamProxy? {
        guard url.isWeb, connect.unixSocketPath == nil else { return nil }
        let exceptions =
            directHosts ?? Self.environment("no_proxy") ?? Self.environment("NO_PROXY") ?? ""
        if NoProxyList(exceptions).contains(host: url.host, port: url.effectivePort) { return nil }
        let names = url.isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        let variables = (names + ["all_proxy", "ALL_PROXY"]).compactMap { name in
            Self.environment(name).map { (origin: name, scheme: "http", url: $0) }
        }
        guard let given = proxy ?? variables.first, !given.url.isEmpty else { return nil }
        // As in curl, http:// is no scheme of its own: with --socks5 it is a SOCKS proxy's.
        let bare = given.url.lowercased().hasPrefix("http://") ? given.url.dropFirst(7) : given.url[...]
        let text = bare.contains("://") ? given.url : "\(given.scheme)://\(bare)"
        guard var way = StreamProxy(url: text) else {
            // As in curl, a proxy of another kind is one that cannot be reached. The error of `FetchURL` is
            // not needed: the one below names the text too.
            let isURL = (try? FetchURL(text)) != nil
            throw FetchFailure(
                .unsupportedURL,
                "\(given.origin): this is no proxy of HTTP or SOCKS at a host and port: \(given.url)",
                status: isURL ? .noConnection : .unknownProxy)
        }
        if let proxyUser {
            let parts = proxyUser.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            way.userName = String(parts[0])
            way.password = parts.count > 1 ? String(parts[1]) : ""
        }
        if way.tls != nil { way.tls = try proxyTLS.settings(option: "--proxy-") }
        return way
    }

    private static func environment(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// - Throws: `FetchFailure` if a file cannot be used.
    func configuration(for request: FetchRequest, by proxy: StreamProxy?, cookies: String?) throws
        -> URLConnection.Configuration
    {
        var configuration = URLConnection.Configuration()
        configuration.cookieStorage = nil
        configuration.cache = nil
        configuration.redirects.follows = false
        configuration.decodesContent = decodes
        configuration.separatesParts = false
        configuration.maximumBytesPerSecond = maximumRate
        configuration.connect = connect
        configuration.connect.timeout = connectTimeout
        if probesPeers {
            // As many probes as Linux sends by default.
            configuration.connect.keepAlive = .init(idle: probeInterval, interval: probeInterval, probes: 9)
        }
        configuration.proxy = proxy.map { .by($0) } ?? .direct
        if request.url.isSecure {
            var tls = tls
            let asksVariable = tls.verifies && tls.authorityFile == nil && tls.authorityFolder == nil
            let variable = asksVariable ? "CURL_CA_BUNDLE" : nil
            if let variable { tls.authorityFile = Self.environment(variable) }
            configuration.tls = try tls.settings(option: "--", authorityFileFrom: variable)
        }
        configuration.omittedFields = ["Accept", "Accept-Encoding", "User-Agent"]
        if case .none = request.body, !request.given.saysLength {
            configuration.omittedFields.append("Content-Length")
        }
        var fields = request.fields(self, cookies: cookies)
        let toProxy = GivenFields(proxyFields)
        // Not one of -H, which is for the server.
        let hasAgent = !userAgent.isEmpty && !toProxy.names.contains("user-agent")
        let agent = hasAgent ? [FetchRequest.Field(name: "User-Agent", value: userAgent)] : []
        configuration.tunnelFields = (agent + toProxy.fields).map {
            URLConnection.HeaderField(name: $0.name, value: $0.value)
        }
        if proxy?.kind == .httpConnect, !request.url.isSecure { fields += toProxy.fields }
        configuration.additionalFields = fields.map { .init(name: $0.name, value: $0.value) }
        if request.url.isWeb { configuration.requestTarget = requestTarget ?? request.url.target }
        return configuration
    }
}

extension TLSOptions {
    /// - Parameters:
    ///   - option: The prefix of the options, for errors.
    ///   - variable: The variable that names the file of authorities; nil if an option does.
    func settings(
        option: String, authorityFileFrom variable: String? = nil
    ) throws(FetchFailure) -> TLSSettings {
        var settings = TLSSettings()
        if !verifies { settings.verification = .none }
        try setAuthorities(of: &settings, option, variable)
        if let certificate { settings.identity = try identity(certificate, option) }
        settings.ciphers = ciphers
        settings.cipherSuites = cipherSuites
        if let minimumVersion { settings.minimumVersion = minimumVersion }
        if let maximumVersion {
            guard settings.minimumVersion <= maximumVersion || minimumVersion == nil else {
                throw FetchFailure(
                    .secureConnectionFailed,
                    "\(option)tls-max: it is below the version that is asked for at least",
                    status: .noTLS)
            }
            settings.maximumVersion = maximumVersion
            settings.minimumVersion = min(settings.minimumVersion, maximumVersion)
        }
        if let pins { settings.pinnedKeys = try Self.keys(pins) }
        if let revocationList { settings.revocationLists = [.file(revocationList)] }
        settings.resumesSessions = resumesSessions
        if offersProtocols { settings.alpn = ["http/1.1"] }
        return settings
    }

    private func setAuthorities(
        of settings: inout TLSSettings, _ option: String, _ variable: String?
    ) throws(FetchFailure) {
        guard authorityFile != nil || authorityFolder != nil else { return }
        let files = authorityFile.map { [$0] } ?? []
        let folders = authorityFolder?.split(separator: ":").map { String($0) } ?? []
        let named =
            files.map { ($0, variable ?? "\(option)cacert") } + folders.map { ($0, "\(option)capath") }
        for (path, origin) in named where access(path, R_OK) != 0 {
            throw FetchFailure(
                .secureConnectionFailed,
                "\(origin): cannot read \(path): \(String(cString: strerror(errno)))",
                status: .badAuthorities)
        }
        settings.certificateAuthorities =
            files.map(TLSSettings.CertificateAuthorities.file)
            + folders.map(TLSSettings.CertificateAuthorities.directory)
    }

    private func identity(_ file: String, _ option: String) throws(FetchFailure) -> TLSIdentity {
        do throws(TLSIdentityError) {
            if !isPEM { return try TLSIdentity(pkcs12File: file, password: password ?? "") }
            return try TLSIdentity(chainFile: file, privateKeyFile: key, password: password)
        } catch {
            let keyFaults: [TLSIdentityError.Code] = [.noPrivateKey, .wrongPassword, .keyDoesNotFit]
            var name = "cert"
            if isPEM, let key,
                keyFaults.contains(error.code) || error.description.hasPrefix("“\(key)”")
            {
                name = "key"
            }
            throw FetchFailure(
                .clientCertificateRejected, "\(option)\(name): \(error.description)", status: .badCertificate)
        }
    }

    private static func keys(_ text: String) throws(FetchFailure) -> Set<Data> {
        let prefix = "sha256//"
        var keys: Set<Data> = []
        for part in text.split(separator: ";") {
            guard part.hasPrefix(prefix),
                let key = Data(base64Encoded: String(part.dropFirst(prefix.count))),
                key.count == 32
            else {
                throw FetchFailure(
                    .serverCertificateUntrusted,
                    "--pinnedpubkey wants 'sha256//BASE64', not '\(part)' (files of keys are not read)",
                    status: .badPin)
            }
            keys.insert(key)
        }
        return keys
    }
}

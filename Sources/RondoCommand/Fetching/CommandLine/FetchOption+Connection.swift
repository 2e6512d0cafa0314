import Rondo

// Options for time limits, credentials, connections and TLS.
extension FetchOption {
    static let time: [FetchOption] = [
        .value("m", "max-time", "seconds", .time, "Limit the time of a transfer in all.") {
            $0.current.totalTimeout = try positive($1, for: "--max-time")
        },
        .value(nil, "connect-timeout", "seconds", .time, "Limit the time until the connection is open.") {
            $0.current.connectTimeout = try positive($1, for: "--connect-timeout")
        },
        .value(
            nil, "limit-rate", "rate", .time,
            "Send and receive at most this many bytes a second on average: 500, 10k, 2M."
        ) {
            let rate = try size($1, for: "--limit-rate")
            $0.current.maximumRate = rate == 0 ? nil : Int(clamping: rate)
        },
        .value(nil, "max-filesize", "size", .time, "Fail if the body is larger than this.") {
            $0.current.maximumSize = try size($1, for: "--max-filesize")
        },
        .value(
            "Y", "speed-limit", "speed", .time,
            "Fail if fewer bytes a second than this are sent and received for the time of -y."
        ) {
            $0.current.slowLimit = Int(clamping: try number($1, for: "-Y"))
            if $0.current.slowTime == nil { $0.current.slowTime = 30 }
        },
        .value("y", "speed-time", "seconds", .time, "The time of -Y, 30 seconds unless set; 0: no limit.") {
            $0.current.slowTime = try positive($1, for: "-y")
            if $0.current.slowLimit == nil { $0.current.slowLimit = 1 }
        },
    ]

    static let identity: [FetchOption] = [
        .value(
            "u", "user", "user:password", .identity,
            "Name and password, sent in Basic to the host of the URL and no other. A name alone: the password is asked for on the terminal."
        ) { $0.current.user = $1 },
        .flag(nil, "basic", .identity, "Send name and password in Basic (default).") {
            if $1 { $0.current.authentication = .basic }
        },
        .flag(nil, "digest", .identity, "Answer challenges of Digest only.") {
            $0.current.authentication = $1 ? .digest : .basic
        },
        .flag(nil, "anyauth", .identity, "Answer challenges of any scheme.") {
            $0.current.authentication = $1 ? .any : .basic
        },
        .value(nil, "oauth2-bearer", "token", .identity, "Send this bearer token.") {
            $0.current.bearer = $1
        },
        .flag(
            "n", "netrc", .identity,
            "Take the names and passwords of hosts from ~/.netrc, also of those to which redirects lead; none goes from https to http."
        ) {
            $0.current.netrc = $1 ? .required : .unused
        },
        .flag(nil, "netrc-optional", .identity, "As -n, but a password in the URL has precedence.") {
            $0.current.netrc = $1 ? .optional : .unused
        },
        .value(nil, "netrc-file", "file", .identity, "As -n, from this file.") {
            $0.current.netrcPath = $1
            if $0.current.netrc == .unused { $0.current.netrc = .required }
        },
        .value(
            "b", "cookie", "data", .identity,
            "Send these cookies, 'a=1; b=2', or those of a file that holds them in Netscape's format, and keep what the servers set while this runs."
        ) {
            if $1.contains("=") { $0.current.cookies.append($1) } else { $0.current.cookieFiles.append($1) }
        },
        .value(
            "c", "cookie-jar", "file", .identity, "Write all cookies there at the end; - is standard output."
        ) { $0.current.cookieJar = $1 },
        .flag("j", "junk-session-cookies", .identity, "Leave out cookies of the file that have no expiry.") {
            $0.current.dropsSessionCookies = $1
        },
    ]

    static let connection: [FetchOption] = [
        .flag("4", "ipv4", .connection, "Connect to IPv4 addresses only.", isNegatable: false) {
            $0.current.connect.addressFamilies = $1 ? .ipv4 : .any
        },
        .flag("6", "ipv6", .connection, "Connect to IPv6 addresses only.", isNegatable: false) {
            $0.current.connect.addressFamilies = $1 ? .ipv6 : .any
        },
        .value(
            nil, "resolve", "host:port:addresses", .connection,
            "Use these addresses for a host and port; * for every host."
        ) {
            try ConnectText.addResolution($1, to: &$0.current.connect)
        },
        .value(
            nil, "connect-to", "host:port:host:port", .connection,
            "Connect to the second host and port instead of the first; an empty part matches all, or stays as it is."
        ) {
            $0.current.connect.detours.append(try ConnectText.detour($1))
        },
        .value(nil, "unix-socket", "path", .connection, "Connect to this Unix socket.") {
            $0.current.connect.unixSocketPath = $1
        },
        .value(
            nil, "abstract-unix-socket", "name", .connection,
            "Connect to this Unix socket in the abstract namespace."
        ) { $0.current.connect.unixSocketPath = "\0" + $1 },
        .value(nil, "interface", "name", .connection, "Connect from this interface or address.") {
            let ports = $0.current.connect.localEnd.ports
            $0.current.connect.localEnd = try ConnectText.localEnd($1)
            $0.current.connect.localEnd.ports = ports
        },
        .value(nil, "local-port", "ports", .connection, "Connect from one of these ports: 4000-4100.") {
            $0.current.connect.localEnd.ports = try ConnectText.ports($1)
        },
        .flag(
            nil, "keepalive", .connection, "Probe a peer that is silent, to notice that it is gone (default)."
        ) { $0.current.probesPeers = $1 },
        .value(
            nil, "keepalive-time", "seconds", .connection,
            "The silence before each probe, 60 seconds unless set."
        ) {
            let time = try number($1, for: "--keepalive-time")
            $0.current.probeInterval = time == 0 ? 60 : Int(time)
        },
        .value(
            "x", "proxy", "url", .connection,
            "Use this proxy: http://, https://, socks5:// or socks4://host:port; '' for none. Without it, as http_proxy, https_proxy, all_proxy and no_proxy say."
        ) { $0.current.proxy = (origin: "-x", scheme: "http", url: $1) },
        .value(
            "U", "proxy-user", "user:password", .connection,
            "Name and password for the proxy. A name alone: as with -u."
        ) {
            $0.current.proxyUser = $1
        },
        .value(nil, "noproxy", "hosts", .connection, "Use no proxy for these hosts; * for all.") {
            $0.current.directHosts = $1
        },
        .value(
            nil, "proxy-header", "field", .connection, "A header field for an HTTP proxy."
        ) { $0.current.proxyFields += try InputFile.fields($1, for: "--proxy-header") },
        .value(nil, "socks5", "host:port", .connection, "Use this SOCKS 5 proxy.") {
            $0.current.proxy = (origin: "--socks5", scheme: "socks5", url: $1)
        },
        .value(nil, "socks5-hostname", "host:port", .connection, "The same: the proxy looks the host up.") {
            $0.current.proxy = (origin: "--socks5-hostname", scheme: "socks5h", url: $1)
        },
        .value(nil, "socks4", "host:port", .connection, "Use this SOCKS 4 proxy.") {
            $0.current.proxy = (origin: "--socks4", scheme: "socks4", url: $1)
        },
        .value(nil, "socks4a", "host:port", .connection, "The same: the proxy looks the host up.") {
            $0.current.proxy = (origin: "--socks4a", scheme: "socks4a", url: $1)
        },
    ]

    static let tls: [FetchOption] = [
        .flag("k", "insecure", .tls, "Do not verify the server's certificate.") {
            $0.current.tls.verifies = !$1
        },
        .value(
            nil, "cacert", "file", .tls,
            "Trust the authorities in this PEM file alone. Without it and --capath, as CURL_CA_BUNDLE says."
        ) {
            $0.current.tls.authorityFile = $1
        },
        .value(nil, "capath", "folders", .tls, "Trust the authorities in these folders alone: a:b.") {
            $0.current.tls.authorityFolder = $1
        },
        .value(
            "E", "cert", "file[:password]", .tls,
            "Send this client certificate, in PEM or, with --cert-type P12, PKCS #12."
        ) {
            (($0.current.tls.certificate), $0.current.tls.password) = ConnectText.certificate(
                $1, $0.current.tls.password)
        },
        .value(nil, "cert-type", "type", .tls, "PEM (default) or P12.") {
            $0.current.tls.isPEM = try isPEM($1, for: "--cert-type")
        },
        .value(nil, "key", "file", .tls, "The certificate's private key, if it is in a file of its own.") {
            $0.current.tls.key = $1
        },
        .value(nil, "key-type", "type", .tls, "PEM.") { _ = try isPEM($1, for: "--key-type") },
        .value(nil, "pass", "password", .tls, "The private key's password.") { $0.current.tls.password = $1 },
        .value(nil, "ciphers", "list", .tls, "Ciphers of TLS 1.2 and before, as OpenSSL writes them.") {
            $0.current.tls.ciphers = $1
        },
        .value(nil, "tls13-ciphers", "list", .tls, "Cipher suites of TLS 1.3.") {
            $0.current.tls.cipherSuites = $1
        },
        .flag("1", "tlsv1", .tls, "TLS 1.0 or later.", isNegatable: false) {
            $0.current.tls.minimumVersion = $1 ? .tls10 : nil
        },
        .flag(nil, "tlsv1.0", .tls, "TLS 1.0 or later.", isNegatable: false) {
            $0.current.tls.minimumVersion = $1 ? .tls10 : nil
        },
        .flag(nil, "tlsv1.1", .tls, "TLS 1.1 or later.", isNegatable: false) {
            $0.current.tls.minimumVersion = $1 ? .tls11 : nil
        },
        .flag(nil, "tlsv1.2", .tls, "TLS 1.2 or later (default).", isNegatable: false) {
            $0.current.tls.minimumVersion = $1 ? .tls12 : nil
        },
        .flag(nil, "tlsv1.3", .tls, "TLS 1.3.", isNegatable: false) {
            $0.current.tls.minimumVersion = $1 ? .tls13 : nil
        },
        .value(nil, "tls-max", "version", .tls, "This version of TLS or an earlier one: 1.2.") {
            let versions: [String: TLSSettings.Version] = [
                "default": .tls13, "1.0": .tls10, "1.1": .tls11, "1.2": .tls12, "1.3": .tls13,
            ]
            guard let version = versions[$1] else {
                throw CommandFailure.usage("--tls-max: not a version of TLS: \($1)")
            }
            $0.current.tls.maximumVersion = version
        },
        .value(
            nil, "pinnedpubkey", "hashes", .tls,
            "The server's key has to be one of these: 'sha256//BASE64;…'."
        ) { $0.current.tls.pins = $1 },
        .value(nil, "crlfile", "file", .tls, "A file with revocation lists of certificates (CRL).") {
            $0.current.tls.revocationList = $1
        },
        .flag(nil, "sessionid", .tls, "Resume TLS sessions of earlier connections (default).") {
            $0.current.tls.resumesSessions = $1
        },
        .flag(nil, "alpn", .tls, "Offer http/1.1 by ALPN (default).") {
            $0.current.tls.offersProtocols = $1
        },
        .flag(nil, "proxy-insecure", .tls, "Do not verify the proxy's certificate.") {
            $0.current.proxyTLS.verifies = !$1
        },
        .value(nil, "proxy-cacert", "file", .tls, "The proxy's authorities.") {
            $0.current.proxyTLS.authorityFile = $1
        },
        .value(nil, "proxy-capath", "folder", .tls, "The proxy's authorities.") {
            $0.current.proxyTLS.authorityFolder = $1
        },
        .value(nil, "proxy-cert", "file[:password]", .tls, "As -E, for the proxy.") {
            (($0.current.proxyTLS.certificate), $0.current.proxyTLS.password) = ConnectText.certificate(
                $1, $0.current.proxyTLS.password)
        },
        .value(nil, "proxy-cert-type", "type", .tls, "As --cert-type, for the proxy.") {
            $0.current.proxyTLS.isPEM = try isPEM($1, for: "--proxy-cert-type")
        },
        .value(nil, "proxy-key", "file", .tls, "As --key, for the proxy.") { $0.current.proxyTLS.key = $1 },
        .value(nil, "proxy-key-type", "type", .tls, "PEM.") { _ = try isPEM($1, for: "--proxy-key-type") },
        .value(nil, "proxy-pass", "password", .tls, "As --pass, for the proxy.") {
            $0.current.proxyTLS.password = $1
        },
    ]

    /// A time of 0 means no limit, as in curl.
    private static func positive(_ text: String, for option: String) throws -> Double? {
        let value = try seconds(text, for: option)
        return value == 0 ? nil : value
    }

    private static func isPEM(_ text: String, for option: String) throws -> Bool {
        switch text.uppercased() {
        case "PEM": return true
        case "P12": return false
        default: throw CommandFailure.usage("\(option): only PEM and P12 are read, not \(text)")
        }
    }
}

// Options for the command line as a whole, and curl's options that are missing here.
extension FetchOption {
    static let files: [FetchOption] = [
        .flag("Z", "parallel", .files, "Load several URLs at once.") { $0.common.isParallel = $1 },
        .value(nil, "parallel-max", "number", .files, "At most this many at once; 50 unless set.") {
            let count = try number($1, for: "--parallel-max")
            $0.common.maximumParallel = count < 1 || count > 300 ? 50 : Int(count)
        },
        .flag(nil, "fail-early", .files, "End with the first transfer that fails.") {
            $0.common.failsEarly = $1
        },
        .flag(
            "g", "globoff", .files,
            "Take {}[] in URLs as they stand; else {a,b} and [1-9], [a-z], [0-100:10] stand for several URLs."
        ) { $0.current.takesGlobs = !$1 },
        .flag(
            ":", "next", .files, "Begin a new group: options from here on are for the URLs from here on.",
            isNegatable: false
        ) { command, _ in
            try command.beginOperation()
        },
        .value("K", "config", "file", .files, "Read options from a file, one a line; - is standard input.") {
            try $0.readConfiguration($1)
        },
    ]

    static let rondo: [FetchOption] = [
        .value(nil, "mode", "name", .rondo, "The run loop mode to load in (default: default).") {
            $0.common.mode = $1
        },
        .flag(
            nil, "events", .rondo,
            "Print one JSON object a line for each call that the delegate gets; no body without -o."
        ) { $0.common.printsEvents = $1 },
        .flag("h", "help", .rondo, "Show help.", isNegatable: false) { command, _ in command.question = .help
        },
        .flag("V", "version", .rondo, "Show the version.", isNegatable: false) { command, _ in
            command.question = .version
        },
    ]

    static let nothing: [FetchOption] = [
        .ignored("q", "disable", "No .curlrc is read anyway."),
        .ignored("N", "no-buffer", "Output is written as it comes anyway."),
        .ignored(nil, "buffer", "The same."),
        .ignored("#", "progress-bar", "Progress is a bar anyway."),
        .ignored("a", "append", "Of FTP."),
        .ignored("B", "use-ascii", "Of FTP."),
        .ignored("l", "list-only", "Of FTP."),
        .ignored(nil, "ftp-pasv", "Of FTP."),
        .ignored(nil, "http1.1", "HTTP/1.1 is spoken anyway."),
        .ignored(nil, "tcp-nodelay", "What is sent goes out at once anyway."),
        .ignored(nil, "expect100-timeout", "A second.", value: "seconds"),
        .ignored(nil, "happy-eyeballs-timeout-ms", "250 ms.", value: "milliseconds"),
        .ignored(
            nil, "styled-output",
            "Heads have no styles; a field is one line, with one space behind its colon."),
        .ignored(nil, "npn", "Not spoken any more."),
        .ignored(nil, "ssl", "For mail and FTP."),
        .ignored(nil, "ssl-reqd", "For mail and FTP."),
        .ignored(nil, "ssl-no-revoke", "Of Windows."),
        .ignored(nil, "ssl-allow-beast", "For old versions of TLS."),
        .ignored(nil, "parallel-immediate", "Of HTTP/2."),
        .ignored(nil, "compressed-ssh", "Of SSH."),
        .ignored(nil, "create-file-mode", "For files on servers.", value: "mode"),
        .ignored(nil, "disable-eprt", "Of FTP."),
        .ignored(nil, "disable-epsv", "Of FTP."),
        .ignored(nil, "ftp-create-dirs", "Of FTP."),
        .ignored(nil, "ftp-skip-pasv-ip", "Of FTP."),
        .ignored(nil, "ftp-pret", "Of FTP."),
        .ignored(nil, "ftp-ssl-ccc", "Of FTP."),
        .ignored(nil, "ftp-ssl-ccc-mode", "Of FTP.", value: "mode"),
        .ignored(nil, "ftp-ssl-control", "Of FTP."),
        .ignored(nil, "mail-rcpt-allowfails", "Of mail."),
        .ignored(nil, "sasl-authzid", "Of mail.", value: "identity"),
        .ignored(nil, "sasl-ir", "Of mail."),
        .ignored(nil, "tftp-blksize", "Of TFTP.", value: "size"),
        .ignored(nil, "tftp-no-options", "Of TFTP."),
        .ignored(nil, "egd-file", "The system has random numbers.", value: "file"),
        .ignored(nil, "random-file", "The same.", value: "file"),
        .ignored(nil, "false-start", "For old versions of TLS."),
        .ignored(nil, "ssl-auto-client-cert", "Of Windows."),
        .ignored(nil, "ssl-revoke-best-effort", "Of Windows."),
        .ignored(nil, "proxy-ssl-allow-beast", "For old versions of TLS."),
        .ignored(nil, "proxy-ssl-auto-client-cert", "Of Windows."),
        .ignored(nil, "socks5-basic", "This is done anyway."),
        .ignored(nil, "suppress-connect-headers", "Heads of proxies' tunnels are not printed anyway."),
    ]

    static let missing: [FetchOption] = {
        let http1 = "HTTP/1.1 is spoken: leave the option out"
        let other = "only http, https and file URLs are loaded"
        let basic = "use -u (Basic), --digest or --oauth2-bearer"
        let tunnel = "use --proxy-cacert, --proxy-cert and --proxy-key"
        return [
            .missing("0", "http1.0", http1), .missing(nil, "http0.9", http1), .missing(nil, "http2", http1),
            .missing(nil, "http2-prior-knowledge", http1), .missing(nil, "http3", http1),
            .missing(nil, "http3-only", http1),
            .missing("2", "sslv2", "use --tlsv1.2 or --tlsv1.3"),
            .missing("3", "sslv3", "use --tlsv1.2 or --tlsv1.3"),
            .missing(nil, "ntlm", basic), .missing(nil, "ntlm-wb", basic), .missing(nil, "negotiate", basic),
            .missing(nil, "aws-sigv4", takesValue: true, basic),
            .missing(nil, "proxy-digest", "use -U, with which proxies' challenges are answered"),
            .missing(nil, "proxy-anyauth", "use -U, with which proxies' challenges are answered"),
            .missing(nil, "proxy-basic", "use -U"),
            .missing(nil, "proxy-ntlm", "use -U"), .missing(nil, "proxy-negotiate", "use -U"),
            .missing(
                "p", "proxytunnel",
                "http requests go to an HTTP proxy as they are, without a tunnel; use a SOCKS proxy, or https"
            ),
            .missing(nil, "preproxy", takesValue: true, "use one proxy, -x"),
            .missing(nil, "proxy1.0", takesValue: true, "use -x"),
            .missing(nil, "haproxy-protocol", "leave the option out"),
            .missing(nil, "trace", takesValue: true, "use -v, or `rondo trace`"),
            .missing(nil, "trace-ascii", takesValue: true, "use -v, or `rondo trace`"),
            .missing(nil, "trace-time", "use -v, which prints times"),
            .missing(nil, "libcurl", takesValue: true, "see the documentation of URLConnection"),
            .missing("M", "manual", "use `rondo fetch --help`, or `man rondo`"),
            .missing("Q", "quote", takesValue: true, other),
            .missing("P", "ftp-port", takesValue: true, other),
            .missing("t", "telnet-option", takesValue: true, other),
            .missing(nil, "mail-from", takesValue: true, other),
            .missing(nil, "mail-rcpt", takesValue: true, other),
            .missing(nil, "doh-url", takesValue: true, "use --resolve"),
            .missing(nil, "doh-insecure", "use --resolve"), .missing(nil, "doh-cert-status", "use --resolve"),
            .missing(nil, "dns-servers", takesValue: true, "use --resolve"),
            .missing(nil, "dns-ipv4-addr", takesValue: true, "use --resolve"),
            .missing(nil, "dns-ipv6-addr", takesValue: true, "use --resolve"),
            .missing(nil, "dns-interface", takesValue: true, "use --resolve"),
            .missing(nil, "hsts", takesValue: true, "use https URLs"),
            .missing(nil, "alt-svc", takesValue: true, "use --connect-to"),
            .missing(nil, "rate", takesValue: true, "use a loop of the shell and sleep"),
            .missing(nil, "raw", "nothing is decoded without --compressed"),
            .missing(nil, "ignore-content-length", "use --max-time"),
            .missing(nil, "tr-encoding", "use --compressed"),
            .missing(nil, "cert-status", "use --crlfile"),
            .missing(nil, "engine", takesValue: true, "use --cert and --key"),
            .missing(nil, "curves", takesValue: true, "use --ciphers or --tls13-ciphers"),
            .missing(nil, "tcp-fastopen", "leave the option out"),
            .missing(nil, "disallow-username-in-url", "leave the option out"),
            .missing(nil, "form-escape", "names are percent-encoded, as by browsers: leave the option out"),
            .missing(nil, "xattr", "use -w '%{url_effective}'"),
            .missing(nil, "tlsuser", takesValue: true, basic),
            .missing(nil, "tlspassword", takesValue: true, basic),
            .missing(nil, "tlsauthtype", takesValue: true, basic),
            .missing(nil, "delegation", takesValue: true, basic),
            .missing(nil, "service-name", takesValue: true, basic),
            .missing(nil, "socks5-gssapi", "use -U"), .missing(nil, "socks5-gssapi-nec", "use -U"),
            .missing(nil, "socks5-gssapi-service", takesValue: true, "use -U"),
            .missing(nil, "proxy-service-name", takesValue: true, "use -U"),
            .missing(nil, "proxy-tlsuser", takesValue: true, "use -U"),
            .missing(nil, "proxy-tlspassword", takesValue: true, "use -U"),
            .missing(nil, "proxy-tlsauthtype", takesValue: true, "use -U"),
            .missing(nil, "proxy-ciphers", takesValue: true, tunnel),
            .missing(nil, "proxy-tls13-ciphers", takesValue: true, tunnel),
            .missing(nil, "proxy-crlfile", takesValue: true, tunnel),
            .missing(nil, "proxy-pinnedpubkey", takesValue: true, tunnel),
            .missing(nil, "proxy-tlsv1", tunnel),
            .missing(nil, "ftp-method", takesValue: true, other),
            .missing(nil, "ftp-account", takesValue: true, other),
            .missing(nil, "ftp-alternative-to-user", takesValue: true, other),
            .missing(nil, "metalink", "name the URLs themselves"),
            .missing(nil, "krb", takesValue: true, other),
            .missing(nil, "mail-auth", takesValue: true, other),
            .missing(nil, "login-options", takesValue: true, other),
            .missing(nil, "pubkey", takesValue: true, other),
            .missing(nil, "hostpubmd5", takesValue: true, other),
            .missing(nil, "hostpubsha256", takesValue: true, other),
            .missing(nil, "crlf", "convert the file, and use --data-binary or -T"),
        ]
    }()
}

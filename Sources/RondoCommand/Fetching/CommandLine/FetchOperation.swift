import Rondo

/// The settings of one operation, which apply to all its URLs.
struct FetchOperation: Sendable {
    /// The destination of the body of a URL.
    enum Output: Equatable, Sendable {
        /// `-` is standard output.
        case file(String)
        /// A file named after the last part of the URL's path.
        case remoteName
    }

    /// The kind of the request's body.
    enum Kind: String, Equatable, Sendable {
        case data = "-d"
        case form = "-F"
    }

    enum TimeCondition: Equatable, Sendable {
        case modifiedSince(Date)
        case unmodifiedSince(Date)
    }

    enum Resumption: Equatable, Sendable {
        /// Continue after the bytes that the output file has already.
        case file
        case offset(Int64)
    }

    enum Authentication: Equatable, Sendable {
        case basic, digest, any
    }

    enum Netrc: Equatable, Sendable {
        case unused, required, optional
    }

    // MARK: URLs and output

    /// A URL as it was given, with its globs.
    struct Address {
        let text: String
        /// True if the name of the output file comes from the URL's path, unless a -o applies to it.
        let takesRemoteName: Bool
    }

    private(set) var urls: [Address] = []
    var outputs: [Output] = []
    /// Empty: nothing is uploaded to that URL.
    var uploads: [String] = []
    var takesGlobs = true
    /// Applies to the URLs that follow.
    var usesRemoteNames = false
    var usesSuggestedNames = false
    var outputFolder: String?
    var createsFolders = false
    /// Nil: a file whose name is taken from the URL or the command line is overwritten, and no other.
    var overwrites: Bool?
    var removesOnError = false
    var setsRemoteTime = false
    var printsHeads = false
    var headPath: String?
    var writeOut: WriteOut?

    mutating func add(url: String) {
        urls.append(Address(text: url, takesRemoteName: usesRemoteNames))
    }

    // MARK: The request

    var method: String?
    var kind: Kind?
    var asksForHead = false
    var data = PostData()
    var form: [FormPart] = []
    var movesDataToQuery = false
    var queryParts: [String] = []
    var fields: [String] = []
    var proxyFields: [String] = []
    /// Empty: none is sent.
    var userAgent = "rondo/\(rondoVersion)"
    var referer: String?
    var sendsReferers = false
    var range: String?
    var resumption: Resumption?
    var timeCondition: TimeCondition?
    var decodes = false
    var requestTarget: String?
    var keepsDots = false
    var etagToCompare: String?
    var etagToSave: String?

    // MARK: Redirects and retries

    var followsRedirects = false
    var maximumRedirects: Int? = 50
    var trustsRedirects = false
    /// Statuses after which a POST remains a POST.
    var keepsPostAfter: Set<Int> = []
    var fails = false
    var failsWithBody = false
    var retries = 0
    var retryDelay: Double?
    var maximumRetryTime: Double?
    var retriesAllErrors = false
    var retriesRefusals = false

    // MARK: Time limits and speed

    var connectTimeout: Double?
    var totalTimeout: Double?
    var maximumRate: Int?
    var maximumSize: Int64?
    /// The lowest speed in bytes a second, and the seconds for which a lower speed is accepted.
    var slowLimit: Int?
    var slowTime: Double?

    // MARK: Credentials and cookies

    var user: String?
    var authentication = Authentication.basic
    var bearer: String?
    var netrc = Netrc.unused
    var netrcPath: String?
    var cookies: [String] = []
    var cookieFiles: [String] = []
    var cookieJar: String?
    var dropsSessionCookies = false

    // MARK: Connection

    var connect = ConnectSettings()
    /// Whether a silent peer is probed, and the seconds of silence before each probe.
    var probesPeers = true
    var probeInterval = 60
    /// The URL of the proxy, the option that gave it, and the scheme of a URL without one or with http.
    var proxy: (origin: String, scheme: String, url: String)?
    var proxyUser: String?
    var directHosts: String?
    var protocols: Set<String> = ["http", "https", "file", "data"]
    var redirectProtocols: Set<String> = ["http", "https"]
    var defaultScheme: String?

    // MARK: TLS

    var tls = TLSOptions()
    var proxyTLS = TLSOptions()

    /// Messages that are printed before anything is loaded.
    var warnings: [String] = []

    // MARK: Derived values

    /// Name and password of -u.
    var credential: (user: String, password: String)? {
        guard let user else { return nil }
        let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }

    // MARK: Checks

    /// - Throws: `CommandFailure` for options that exclude each other.
    func check() throws {
        if usesSuggestedNames, printsHeads {
            throw CommandFailure.usage(
                "-i and -J exclude each other: heads and body would share a name that a head gives")
        }
        let kind = movesDataToQuery && self.kind == .data ? nil : self.kind
        let uploadsFile = uploads.contains { !$0.isEmpty }
        if uploadsFile, let other = kind?.rawValue ?? (asksForHead ? "-I" : nil) {
            throw CommandFailure.usage(
                "-T and \(other) exclude each other: a request has one method and one body")
        }
        if let kind {
            if asksForHead {
                throw CommandFailure.usage(
                    "-I and \(kind.rawValue) exclude each other: a request has one method and one body (-G takes -d to the query)"
                )
            }
            if resumption != nil {
                throw CommandFailure.usage(
                    "-C and \(kind.rawValue) exclude each other: neither the data nor the response to them is continued (-G takes -d to the query)"
                )
            }
        }
        if resumption != nil, overwrites == false {
            throw CommandFailure.usage("-C and --no-clobber exclude each other")
        }
        if resumption == .file, usesSuggestedNames {
            throw CommandFailure.usage(
                "-C - and -J exclude each other: the bytes that a file has are not known before its name")
        }
        if removesOnError, resumption != nil {
            throw CommandFailure.usage("-C and --remove-on-error exclude each other")
        }
    }

    /// Sets the kind of the body; options for two kinds exclude each other.
    mutating func choose(_ kind: Kind) throws {
        if let other = self.kind, other != kind {
            throw CommandFailure.usage(
                "\(other.rawValue) and \(kind.rawValue) exclude each other: a request has one method and one body"
            )
        }
        self.kind = kind
    }
}

/// The options for TLS with a server or proxy.
struct TLSOptions: Equatable, Sendable {
    var verifies = true
    var authorityFile: String?
    var authorityFolder: String?
    var certificate: String?
    var password: String?
    var key: String?
    var isPEM = true
    var ciphers: String?
    var cipherSuites: String?
    var minimumVersion: TLSSettings.Version?
    var maximumVersion: TLSSettings.Version?
    var pins: String?
    var revocationList: String?
    var resumesSessions = true
    var offersProtocols = true
}

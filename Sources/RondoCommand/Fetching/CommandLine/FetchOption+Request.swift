import Rondo

// Options for requests, and for the output of responses.
extension FetchOption {
    static let request: [FetchOption] = [
        .value(
            "X", "request", "method", .request,
            "The method; GET, HEAD, POST, PUT, DELETE and CONNECT are sent in capitals. It stays the same when a redirect is followed; -d, -F, -I and -T choose theirs by themselves."
        ) { $0.current.choose(method: $1) },
        .value(
            "H", "header", "field", .request,
            "A field to send: 'Name: value'; 'Name;' without a value; 'Name:' not at all; @FILE for a file of fields. As often as is wanted."
        ) {
            $0.current.fields += try InputFile.fields($1, for: "-H")
        },
        .value(
            "d", "data", "data", .request,
            "Post this as a form; @FILE reads it from a file. Several are joined by &."
        ) {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .text)
        },
        .value(nil, "data-ascii", "data", .request, "The same as -d.") {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .text)
        },
        .value(nil, "data-binary", "data", .request, "As -d; a file is sent as it is, line ends and all.") {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .binary)
        },
        .value(nil, "data-raw", "data", .request, "As -d; @ means nothing.") {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .raw)
        },
        .value(
            nil, "data-urlencode", "data", .request,
            "As -d, percent-encoded: 'content', '=content', 'name=content', '@file', 'name@file'."
        ) {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .encoded)
        },
        .value(
            nil, "json", "data", .request,
            "Post this as JSON, and accept JSON; @FILE reads it from a file. (What fetch called --json before is --events.)"
        ) {
            try $0.current.choose(.data)
            try $0.current.data.append($1, as: .json)
        },
        .value(
            "F", "form", "name=content", .request,
            "A field of a multipart form: 'name=value', 'name=@file' to upload, 'name=<file' for its content; ;type=, ;filename=, ;headers= behind it."
        ) {
            try $0.current.choose(.form)
            let part = try FormPart($1)
            $0.current.form.append(part)
            $0.current.warnings += part.warnings
        },
        .value(nil, "form-string", "name=value", .request, "As -F; the value is taken as it stands.") {
            try $0.current.choose(.form)
            $0.current.form.append(try FormPart(string: $1))
        },
        .value(
            "T", "upload-file", "file", .request, "Put this file; - and . are standard input, '' is none."
        ) {
            $0.current.uploads.append($1)
        },
        .flag("G", "get", .request, "Send the data of -d in the query of a GET.") {
            $0.current.movesDataToQuery = $1
        },
        .value(
            nil, "url-query", "data", .request,
            "Append this to the query, in the forms of --data-urlencode; +data as it stands."
        ) {
            $0.current.queryParts.append(try QueryPart.encoded($1))
        },
        .flag("I", "head", .request, "Ask for the head alone, and print it.") {
            $0.current.asksForHead = $1
        },
        .value("A", "user-agent", "name", .request, "The User-Agent to send.") {
            $0.current.userAgent = $1
        },
        .value(
            "e", "referer", "url", .request,
            "The page that the link was on; ';auto' behind it, or alone: when a redirect is followed, the URL before."
        ) {
            let isAuto = $1.hasSuffix(";auto")
            $0.current.sendsReferers = isAuto
            let url = isAuto ? String($1.dropLast(5)) : $1
            $0.current.referer = url.isEmpty ? nil : url
        },
        .value("r", "range", "range", .request, "Only these bytes: 0-99, -100, 100-.") {
            // A single number stands for the range from there to the end.
            let isNumber = $1.allSatisfy { $0.isASCII && $0.isNumber }
            $0.current.range = isNumber ? $1 + "-" : $1
        },
        .value(
            "C", "continue-at", "offset", .request,
            "Continue at this byte; - continues after the bytes that the output file has."
        ) {
            $0.current.resumption = $1 == "-" ? .file : .offset(try number($1, for: "-C"))
        },
        .value(
            "z", "time-cond", "time", .request,
            "Only if modified later than this date, or this file; with - before it: earlier."
        ) {
            $0.current.timeCondition = TimeText.condition($1)
            if $0.current.timeCondition == nil {
                $0.current.warnings.append("-z: neither a known date nor a file: \($1)")
            }
        },
        .flag(
            nil, "compressed", .request,
            "Ask for compressed content, and decode it. Without it nothing is decoded."
        ) { $0.current.decodes = $1 },
        .value(
            nil, "request-target", "path", .request,
            "The target in the request line, instead of the URL's path."
        ) { $0.current.requestTarget = $1 },
        .flag(nil, "path-as-is", .request, "Send /../ and /./ of the URL's path as they stand.") {
            $0.current.keepsDots = $1
        },
        .value(nil, "url", "url", .request, "A URL, as without an option.") { $0.current.add(url: $1) },
        .value(
            nil, "proto-default", "scheme", .request, "The scheme of URLs that name none, http unless set."
        ) { $0.current.defaultScheme = $1.lowercased() },
        .value(nil, "etag-compare", "file", .request, "Only if the ETag differs from the one in this file.") {
            $0.current.etagToCompare = $1
        },
        .value(nil, "etag-save", "file", .request, "Save the response's ETag there.") {
            $0.current.etagToSave = $1
        },
    ]

    static let output: [FetchOption] = [
        .value(
            "o", "output", "file", .output,
            "Write the body to a file; - is standard output; #1 stands for what the first glob of the URL matched."
        ) {
            $0.current.outputs.append(.file($1))
        },
        .flag("O", "remote-name", .output, "Write the body to a file named as the end of the URL's path.") {
            $0.current.outputs.append($1 ? .remoteName : .file("-"))
        },
        .flag(
            nil, "remote-name-all", .output,
            "As -O for every URL that follows, unless -o or --no-remote-name is for it."
        ) {
            $0.current.usesRemoteNames = $1
        },
        .flag("J", "remote-header-name", .output, "With -O: take the name that the server suggests.") {
            $0.current.usesSuggestedNames = $1
        },
        .value(nil, "output-dir", "folder", .output, "Where -o and -O write.") {
            $0.current.outputFolder = $1
        },
        .flag(nil, "create-dirs", .output, "Make the folders that -o names.") {
            $0.current.createsFolders = $1
        },
        .flag(
            nil, "clobber", .output,
            "Overwrite files, also with -J, which refuses to otherwise; --no-clobber chooses another name, file.1, where there is one."
        ) { $0.current.overwrites = $1 },
        .flag(nil, "remove-on-error", .output, "Remove the output file if the transfer fails.") {
            $0.current.removesOnError = $1
        },
        .flag("R", "remote-time", .output, "Set the file's time to the response's Last-Modified.") {
            $0.current.setsRemoteTime = $1
        },
        .flag("i", "include", .output, "Print the heads of responses before their bodies.") {
            $0.current.printsHeads = $1
        },
        .value(
            "D", "dump-header", "file", .output, "Write the heads of responses there; - is standard output."
        ) { $0.current.headPath = $1 },
        .value(
            "w", "write-out", "format", .output,
            "Print this behind each transfer, with curl's variables: %{http_code}, %{time_total}, %header{name}, %{json} …; @FILE reads it from a file."
        ) {
            var format = $1
            if $1.first == "@" {
                format = try InputFile.text(String($1.dropFirst()), for: "-w").withoutLineEnds
            }
            $0.current.writeOut = WriteOut(format)
        },
        .flag("s", "silent", .output, "Show neither progress nor errors.") { $0.common.isSilent = $1 },
        .flag("S", "show-error", .output, "With -s: show errors.") { $0.common.showsErrors = $1 },
        .flag("v", "verbose", .output, "Print each step and the heads on standard error.") {
            $0.common.isVerbose = $1
        },
        .flag(nil, "progress-meter", .output, "Show progress, where standard error is a terminal.") {
            $0.common.showsProgress = $1
        },
        .value(nil, "stderr", "file", .output, "Write messages there; - is standard output.") {
            $0.common.messagePath = $1
        },
    ]

    static let redirects: [FetchOption] = [
        .flag("L", "location", .redirects, "Follow redirects. Without it a redirect is the response.") {
            $0.current.followsRedirects = $1
        },
        .flag(
            nil, "location-trusted", .redirects,
            "Follow redirects, and send name and password to other hosts too."
        ) {
            $0.current.followsRedirects = $1
            $0.current.trustsRedirects = $1
        },
        .value(
            nil, "max-redirs", "number", .redirects,
            "Follow at most this many redirects; 50 unless set; -1: any number."
        ) {
            let count = try number($1, for: "--max-redirs", lowest: -1)
            $0.current.maximumRedirects = count < 0 ? nil : Int(count)
        },
        .flag(nil, "post301", .redirects, "A POST stays one after status 301.") {
            $0.current.keepPost(after: 301, $1)
        },
        .flag(nil, "post302", .redirects, "A POST stays one after status 302.") {
            $0.current.keepPost(after: 302, $1)
        },
        .flag(nil, "post303", .redirects, "A POST stays one after status 303.") {
            $0.current.keepPost(after: 303, $1)
        },
        .value(nil, "proto-redir", "schemes", .redirects, "Follow redirects to these schemes only.") {
            try $0.current.change(\.redirectProtocols, by: $1, for: "--proto-redir")
        },
        .value(nil, "proto", "schemes", .redirects, "Load these schemes only: '=https' for one.") {
            try $0.current.change(\.protocols, by: $1, for: "--proto")
        },
        .flag("f", "fail", .redirects, "A status of 400 or more is a failure, 22, without its body.") {
            if $1, $0.current.failsWithBody {
                throw CommandFailure.usage("--fail and --fail-with-body exclude each other")
            }
            $0.current.fails = $1
        },
        .flag(nil, "fail-with-body", .redirects, "As -f, and the body is written.") {
            if $1, $0.current.fails {
                throw CommandFailure.usage("--fail and --fail-with-body exclude each other")
            }
            $0.current.failsWithBody = $1
        },
        .value(
            nil, "retry", "number", .redirects,
            "Try again this many times after a timeout, a failed look-up of a name, or a status of 408, 429, 500, 502, 503 or 504."
        ) {
            $0.current.retries = Int(try number($1, for: "--retry"))
        },
        .value(
            nil, "retry-delay", "seconds", .redirects,
            "Wait this long between tries, instead of 1, 2, 4 … seconds. A Retry-After with a status of --retry's has precedence."
        ) { $0.current.retryDelay = try seconds($1, for: "--retry-delay") },
        .value(nil, "retry-max-time", "seconds", .redirects, "Start no try later than this after the first.")
        {
            $0.current.maximumRetryTime = try seconds($1, for: "--retry-max-time")
        },
        .flag(nil, "retry-all-errors", .redirects, "Try again after any failure.") {
            $0.current.retriesAllErrors = $1
        },
        .flag(nil, "retry-connrefused", .redirects, "Try again also if the connection was refused.") {
            $0.current.retriesRefusals = $1
        },
    ]

    // MARK: - Values

    static func number(_ text: String, for option: String, lowest: Int64 = 0) throws -> Int64 {
        guard let value = Int64(text), value >= lowest else {
            throw CommandFailure.usage("\(option): expected a proper number, not '\(text)'")
        }
        return value
    }

    static func seconds(_ text: String, for option: String) throws -> Double {
        let isNumber = text.first.map { $0.isNumber || $0 == "." } ?? false
        guard isNumber, let value = Double(text), value >= 0, value < 1e9 else {
            throw CommandFailure.usage("\(option): expected a number of seconds, not '\(text)'")
        }
        return value
    }

    /// A number of bytes in curl's units: 1k is 1024.
    static func size(_ text: String, for option: String) throws -> Int64 {
        let factors: [Character: Int64] = [
            "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50,
        ]
        let factor = text.last.flatMap { factors[Character($0.lowercased())] }
        guard let value = Int64(factor == nil ? text : String(text.dropLast())), value >= 0,
            case let (bytes, overflow) = value.multipliedReportingOverflow(by: factor ?? 1), !overflow
        else { throw CommandFailure.usage("\(option): expected a size, 500, 10k or 2M, not '\(text)'") }
        return bytes
    }
}

extension FetchOperation {
    /// Foundation's `URLRequest` writes the names of these methods in capitals, however they are given.
    private static let capitalizedMethods: Set = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"]

    mutating func choose(method name: String) {
        let capitals = name.uppercased()
        let isCapitalized = Self.capitalizedMethods.contains(capitals)
        if isCapitalized, name != capitals { warnings.append("-X: \(name) is sent as \(capitals)") }
        method = isCapitalized ? capitals : name
    }

    mutating func keepPost(after status: Int, _ keeps: Bool) {
        if keeps { keepsPostAfter.insert(status) } else { keepsPostAfter.remove(status) }
    }
}

extension FetchOperation {
    static let loadedSchemes: Set<String> = ["http", "https", "file", "data"]
    /// The schemes that curl loads, and may be named here, too.
    private static let curlSchemes: Set<String> = [
        "dict", "file", "ftp", "ftps", "gopher", "gophers", "http", "https", "imap", "imaps", "ldap", "ldaps",
        "mqtt", "pop3", "pop3s", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp",
        "smb", "smbs", "smtp", "smtps", "telnet", "tftp",
    ]

    /// Changes the default of a set of URL schemes as curl's notation says: `=https`, `-all,https`, `+data`.
    /// A scheme without a sign is added.
    mutating func change(
        _ schemes: WritableKeyPath<FetchOperation, Set<String>>, by text: String, for option: String
    ) throws {
        self[keyPath: schemes] = FetchOperation()[keyPath: schemes]
        for item in text.split(separator: ",") {
            let signs = item.prefix { "=+-".contains($0) }
            let name = item.dropFirst(signs.count).lowercased()
            guard name.first?.isLetter ?? false else {
                throw CommandFailure.usage("\(option): expected schemes, '=http,https', not '\(text)'")
            }
            let named = name == "all" ? Self.loadedSchemes : [name]
            if signs.last == "=" { self[keyPath: schemes] = [] }
            if signs.last == "-" {
                self[keyPath: schemes].subtract(named)
            } else {
                self[keyPath: schemes].formUnion(named)
            }
            if !named.isSubset(of: Self.loadedSchemes.union(Self.curlSchemes)) {
                warnings.append("\(option): unrecognized protocol '\(name)'")
            }
        }
    }
}

import Rondo

/// The parsed command line of `rondo fetch`: common settings, and one operation for each part between
/// `--next`s.
struct FetchCommandLine: Sendable {
    /// A request for information instead of loads.
    enum Question: Equatable, Sendable {
        case help
        case version
    }

    /// The most levels of config files that name config files.
    private static let maximumDepth = 10

    var question: Question?
    var common = CommonSettings()
    var operations = [FetchOperation()]
    private var depth = 0

    /// The operation that options apply to.
    var current: FetchOperation {
        get { operations[operations.count - 1] }
        set { operations[operations.count - 1] = newValue }
    }

    init() {}

    /// - Throws: `CommandFailure` if the command line is invalid.
    init(_ arguments: [String]) throws {
        try read(arguments)
        guard question == nil else { return }
        if operations.count > 1, current.urls.isEmpty { operations.removeLast() }
        for operation in operations {
            if operation.urls.isEmpty { throw CommandFailure.usage("no URL specified") }
            try operation.check()
        }
    }

    private mutating func read(_ arguments: [String]) throws {
        var rest = arguments[...]
        var onlyURLs = false
        while let argument = rest.popFirst() {
            if onlyURLs || !argument.hasPrefix("-") || argument == "-" {
                current.add(url: argument)
            } else if argument == "--" {
                onlyURLs = true
            } else if argument.hasPrefix("--") {
                try readLong(String(argument.dropFirst(2)), &rest)
            } else {
                try readShort(argument.dropFirst(), &rest)
            }
        }
    }

    private mutating func readLong(_ name: String, _ rest: inout ArraySlice<String>) throws {
        // A name that is unknown in both forms is reported by the last line.
        if name.hasPrefix("no-"), let option = try? FetchOption.of(name: name), option.name == name {
            return try apply(option, spelled: "--" + name, value: &rest)
        }
        if name.hasPrefix("no-"), let option = try? FetchOption.of(name: String(name.dropFirst(3))),
            option.isNegatable, case .flag(_, let set) = option.kind
        {
            return try set(&self, false)
        }
        try apply(try FetchOption.of(name: name), spelled: "--" + name, value: &rest)
    }

    /// Reads the letters of one word. The value of a letter follows it in the word, or is the next argument.
    private mutating func readShort(_ word: Substring, _ rest: inout ArraySlice<String>) throws {
        var letters = word
        while let letter = letters.popFirst() {
            guard let option = FetchOption.of(letter: letter) else {
                throw CommandFailure.usage("option -\(letter): is unknown")
            }
            if option.takesValue, !letters.isEmpty {
                var joined = [String(letters)][...]
                return try apply(option, spelled: "-\(letter)", value: &joined)
            }
            try apply(option, spelled: "-\(letter)", value: &rest)
        }
    }

    private mutating func apply(
        _ option: FetchOption, spelled: String, value rest: inout ArraySlice<String>
    ) throws {
        switch option.kind {
        case .flag(_, let set): try set(&self, true)
        case .value(_, let set):
            guard let value = rest.popFirst() else {
                throw CommandFailure.usage("option \(spelled): requires parameter")
            }
            try set(&self, value)
        case .missing(let takesValue, let advice):
            if takesValue { _ = rest.popFirst() }
            throw CommandFailure.usage("option \(spelled): is not there; \(advice)")
        }
    }

    // MARK: - Passwords

    /// Adds the passwords of users that -u and -U name without one.
    ///
    /// - Parameter ask: Returns the answer to a prompt.
    mutating func askForPasswords(_ ask: (_ prompt: String) throws -> String) throws {
        for index in operations.indices {
            let place = operations.count > 1 ? " on URL #\(index + 1)" : ""
            func completed(_ user: String, _ kind: String) throws -> String {
                if user.contains(":") { return user }
                return try "\(user):" + ask("Enter \(kind) password for user '\(user)'\(place):")
            }
            if let user = operations[index].user, operations[index].bearer == nil {
                operations[index].user = try completed(user, "host")
            }
            if let user = operations[index].proxyUser {
                operations[index].proxyUser = try completed(user, "proxy")
            }
        }
    }

    // MARK: - Called by options

    /// Begins a new operation for the URLs that follow.
    mutating func beginOperation() throws {
        if current.urls.isEmpty { return }
        operations.append(FetchOperation())
    }

    /// Reads the options of a config file; `-` is standard input.
    mutating func readConfiguration(_ path: String) throws {
        guard depth < Self.maximumDepth else {
            throw CommandFailure.usage(
                "-K: config files name config files more than \(Self.maximumDepth) deep")
        }
        let file = try InputFile.data(path, for: "-K")
        depth += 1
        for line in ConfigFile.lines(in: file) {
            do {
                try read(line)
            } catch let failure as CommandFailure {
                throw CommandFailure("\(path):\(line.number): \(failure.message)", status: failure.status)
            }
        }
        depth -= 1
    }

    private mutating func read(_ line: ConfigFile.Line) throws {
        guard line.isUTF8 else { throw CommandFailure("not UTF-8", status: ExitStatus.unreadable) }
        var rest = (line.value.map { [$0] } ?? [])[...]
        if line.option.hasPrefix("--") {
            try readLong(String(line.option.dropFirst(2)), &rest)
        } else {
            try readShort(line.option.dropFirst(), &rest)
        }
        if let value = rest.first, !value.isEmpty {
            throw CommandFailure.usage("option \(line.option): takes no value, so '\(value)' has no use")
        }
    }
}

/// The settings for all operations of a command line.
struct CommonSettings: Equatable, Sendable {
    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var showsProgress = true
    /// Whether several transfers run at once.
    var isParallel = false
    var maximumParallel = 50
    /// The first failure ends all transfers.
    var failsEarly = false
    /// The file for messages, instead of standard error; `-` is standard output.
    var messagePath: String?
    /// The run loop mode of the transfers.
    var mode = "default"
    /// Print one JSON object for each call of the delegate.
    var printsEvents = false

    /// True if errors are reported.
    var tellsErrors: Bool { !isSilent || showsErrors }
}

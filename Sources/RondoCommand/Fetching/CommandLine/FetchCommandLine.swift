import Rondo

/// A command line of `rondo fetch`, read: what holds for all of it, and one operation for each part between `--next`s.
struct FetchCommandLine: Sendable {
    /// What is asked for in place of loads.
    enum Question: Equatable, Sendable {
        case help
        case version
    }

    /// Config files that name config files, at most.
    private static let maximumDepth = 10

    var question: Question?
    var common = CommonSettings()
    var operations = [FetchOperation()]
    private var depth = 0

    /// The operation that options are for.
    var current: FetchOperation {
        get { operations[operations.count - 1] }
        set { operations[operations.count - 1] = newValue }
    }

    init() {}

    /// - Throws: `CommandFailure` for what makes no sense.
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

    /// Letters in one word; a value stands behind its letter, or is the next argument.
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

    // MARK: - For options

    /// What follows is for URLs of its own.
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
        let text = try InputFile.text(path, for: "-K")
        depth += 1
        try read(ConfigFile.arguments(in: text))
        depth -= 1
    }
}

/// What holds for all operations of a command line.
struct CommonSettings: Equatable, Sendable {
    var isSilent = false
    var showsErrors = false
    var isVerbose = false
    var showsProgress = true
    /// How many transfers run at once; nil: one after the other.
    var isParallel = false
    var maximumParallel = 50
    /// The first that fails ends all.
    var failsEarly = false
    /// Where messages go in place of standard error; `-` is standard output.
    var messagePath: String?
    /// A run loop mode.
    var mode = "default"
    /// One JSON object for each call of the delegate.
    var printsEvents = false

    /// Errors are told of.
    var tellsErrors: Bool { !isSilent || showsErrors }
}

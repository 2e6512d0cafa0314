/// One option of `rondo fetch`: its spelling, its help, and its effect.
///
/// Help, completions and the manual page are made from these too, so that each fact is written once.
struct FetchOption: Sendable {
    enum Kind: Sendable {
        /// Takes no value. If `isNegatable`, `--no-NAME` turns it off.
        case flag(isNegatable: Bool, @Sendable (inout FetchCommandLine, Bool) throws -> Void)
        /// Takes a value, which help calls `name`.
        case value(name: String, @Sendable (inout FetchCommandLine, String) throws -> Void)
        /// An option of curl that is missing here; `advice` names an alternative.
        case missing(takesValue: Bool, advice: String)
    }

    /// The heading under which help lists the option.
    enum Group: String, CaseIterable, Sendable {
        case request = "Request"
        case output = "Output"
        case redirects = "Redirects and retries"
        case time = "Time and amount"
        case identity = "Credentials and cookies"
        case connection = "Connection and proxies"
        case tls = "TLS"
        case files = "Several URLs, and files"
        case rondo = "Rondo's own"
        case nothing = "Accepted, without effect"
    }

    let short: Character?
    let name: String
    let group: Group
    let help: String
    let kind: Kind

    var takesValue: Bool {
        switch kind {
        case .flag: false
        case .value: true
        case .missing(let takesValue, _): takesValue
        }
    }

    var valueName: String? { if case .value(let name, _) = kind { name } else { nil } }

    var isNegatable: Bool { if case .flag(let isNegatable, _) = kind { isNegatable } else { false } }

    /// True if help lists the option.
    var isShown: Bool { if case .missing = kind { false } else { true } }
}

extension FetchOption {
    static func flag(
        _ short: Character?, _ name: String, _ group: Group, _ help: String, isNegatable: Bool = true,
        _ set: @escaping @Sendable (inout FetchCommandLine, Bool) throws -> Void
    ) -> FetchOption {
        FetchOption(
            short: short, name: name, group: group, help: help, kind: .flag(isNegatable: isNegatable, set))
    }

    static func value(
        _ short: Character?, _ name: String, _ value: String, _ group: Group, _ help: String,
        _ set: @escaping @Sendable (inout FetchCommandLine, String) throws -> Void
    ) -> FetchOption {
        FetchOption(short: short, name: name, group: group, help: help, kind: .value(name: value, set))
    }

    static func missing(
        _ short: Character?, _ name: String, takesValue: Bool = false, _ advice: String
    ) -> FetchOption {
        FetchOption(
            short: short, name: name, group: .nothing, help: "",
            kind: .missing(takesValue: takesValue, advice: advice))
    }

    /// An option that is accepted, because command lines contain it, and has no effect.
    static func ignored(
        _ short: Character?, _ name: String, _ help: String, value: String? = nil
    ) -> FetchOption {
        if let value { return .value(short, name, value, .nothing, help) { _, _ in } }
        return .flag(short, name, .nothing, help) { _, _ in }
    }

    /// All options in the order of help.
    static let all: [FetchOption] =
        request + output + redirects + time + identity + connection + tls + files + rondo + nothing + missing

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
    private static let byLetter = Dictionary(
        uniqueKeysWithValues: all.compactMap { option in option.short.map { ($0, option) } })

    static func of(letter: Character) -> FetchOption? { byLetter[letter] }

    /// The option with this name, or the only one that begins with it, as in curl.
    static func of(name: String) throws(CommandFailure) -> FetchOption {
        if let option = byName[name] { return option }
        let begun = all.filter { $0.name.hasPrefix(name) }
        guard let first = begun.first, !name.isEmpty else {
            let hint = name.contains("=") ? " (a value follows its option: --opt value)" : ""
            throw .usage("option --\(name): is unknown\(hint)")
        }
        if begun.count > 1 {
            let names = begun.map { "--" + $0.name }.joined(separator: ", ")
            throw .usage("option --\(name): is ambiguous: \(names)")
        }
        return first
    }
}

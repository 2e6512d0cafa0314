import Rondo

/// Adds the options of `rondo fetch` to the manual page and to the shells' completions, which ArgumentParser
/// makes without knowing these options.
enum FetchCompletions {
    // MARK: - Manual page

    /// ArgumentParser's description of the whole command, with the options of fetch added.
    static func describing(_ dump: String) -> String {
        guard var whole = try? JSONSerialization.jsonObject(with: Data(dump.utf8)) as? [String: Any],
            var command = whole["command"] as? [String: Any],
            var parts = command["subcommands"] as? [[String: Any]],
            let index = parts.firstIndex(where: { $0["commandName"] as? String == "fetch" })
        else { return dump }
        parts[index]["arguments"] =
            [
                [
                    "kind": "positional", "valueName": "url", "abstract": "What to load.",
                    "isOptional": false,
                    "isRepeating": true, "shouldDisplay": true,
                ] as [String: Any]
            ] + FetchOption.all.filter(\.isShown).map(description)
        command["subcommands"] = parts
        whole["command"] = command
        // JSON that was parsed can be encoded again.
        guard
            let data = try? JSONSerialization.data(
                withJSONObject: whole, options: [.prettyPrinted, .sortedKeys])
        else { return dump }
        return String(decoding: data, as: UTF8.self)
    }

    private static func description(_ option: FetchOption) -> [String: Any] {
        let short = option.short.map { [["kind": "short", "name": String($0)]] } ?? []
        var description: [String: Any] = [
            "kind": option.takesValue ? "option" : "flag", "abstract": option.help, "isOptional": true,
            "isRepeating": true, "shouldDisplay": true,
            "names": short + [["kind": "long", "name": option.name]],
            "preferredName": ["kind": "long", "name": option.name],
        ]
        description["valueName"] = option.valueName ?? option.name
        return description
    }

    // MARK: - Shells

    /// ArgumentParser's script for a shell, with the options of fetch added.
    static func adding(to script: String, shell: String) -> String {
        switch shell {
        case "bash": script + "\n" + bash
        case "zsh": script.replacingOccurrences(of: zshEnd, with: zsh + "\n" + zshEnd)
        case "fish": script + "\n" + fish
        default: script
        }
    }

    private static var shown: [FetchOption] { FetchOption.all.filter(\.isShown) }

    /// A function that replaces the earlier function of the same name.
    private static var bash: String {
        let names = shown.flatMap { option in
            (option.short.map { ["-\($0)"] } ?? []) + ["--" + option.name]
                + (option.isNegatable ? ["--no-" + option.name] : [])
        }
        return """
            _rondo_fetch() {
                case "${cur}" in
                -*) COMPREPLY+=($(compgen -W '\(names.joined(separator: " "))' -- "${cur}")) ;;
                *) COMPREPLY+=($(compgen -f -- "${cur}")) ;;
                esac
            }

            """
    }

    private static let zshEnd = "if [[ \"${funcstack[1]}\" = _rondo ]]; then"

    private static var zsh: String {
        let specs = shown.map { option in
            let value = option.valueName.map { ":" + zshText($0) + ":_files" } ?? ""
            let help = "[" + zshText(option.help) + "]"
            let long = "'*--\(option.name)\(help)\(value)'"
            guard let short = option.short else { return long }
            return
                "'*-\(short == ":" ? "\\:" : String(short))\(option.takesValue ? "+" : "")\(help)\(value)' "
                + long
        }
        return """
            _rondo_fetch() {
                local -i ret=1
                local -ar arg_specs=(
                    '*:url:_urls'
            \(specs.map { "        " + $0 }.joined(separator: "\n"))
                )
                _arguments -w -s : "${arg_specs[@]}" && ret=0

                return "${ret}"
            }

            """
    }

    private static func zshText(_ text: String) -> String {
        var escaped = text.replacingOccurrences(of: "\\", with: "\\\\")
        for sign in ["[", "]", ":"] { escaped = escaped.replacingOccurrences(of: sign, with: "\\" + sign) }
        return escaped.replacingOccurrences(of: "'", with: "'\\''")
    }

    private static var fish: String {
        shown.map { option in
            let short = option.short.map { " -s '\($0)'" } ?? ""
            let help = option.help.replacingOccurrences(of: "\\", with: "\\\\")
                .replacingOccurrences(of: "'", with: "\\'")
            return "complete -c 'rondo' -n '__fish_seen_subcommand_from fetch'\(short) -l '\(option.name)'"
                + "\(option.takesValue ? " -r" : "") -d '\(help)'\n"
        }.joined()
    }
}

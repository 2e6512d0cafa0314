import Rondo
import RondoLab

/// The text of `rondo fetch --help`, made from the table of options.
enum FetchHelp {
    static let discussion = """
        Options are curl's, and mean what they mean there: combined letters (-fsSL), joined values (-ofile, -XPOST), several \
        URLs, {a,b} and [1-9] in them, --next, and curl's exit codes (7: no connection, 22: -f and a status of 400 or more, \
        28: timed out, 60: the certificate is not trusted …). As with curl, redirects are followed with -L only, content is \
        decoded with --compressed only, nothing is kept when the command ends unless a file is named for it, and no cache is \
        used. Otherwise than with curl: no .curlrc is read, HTTP/1.1 is spoken and no other version, http, https and file \
        URLs are loaded, and secrets in the heads that -v prints are hidden. An option of curl's that is missing here says in a \
        line what to use.
        """

    static func text(width: Int) -> String {
        let width = min(max(width, 40), 110)
        var lines = ["Usage: rondo fetch [options] <url> ...", ""] + discussion.wrapped(width: width)
        for group in FetchOption.Group.allCases {
            let options = FetchOption.all.filter { $0.group == group && $0.isShown }
            lines += ["", group.rawValue + ":"]
            for option in options { lines += self.lines(option, width: width) }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(_ option: FetchOption, width: Int) -> [String] {
        let names = spelling(option)
        let column = 30
        let help = (option.help + negation(option)).wrapped(width: max(width - column, 20))
        let padded = "  " + names
        if padded.count >= column {
            return [padded] + help.map { String(repeating: " ", count: column) + $0 }
        }
        return help.enumerated().map { index, line in
            index == 0
                ? padded + String(repeating: " ", count: column - padded.count) + line
                : String(repeating: " ", count: column) + line
        }
    }

    private static func spelling(_ option: FetchOption) -> String {
        let short = option.short.map { "-\($0), " } ?? "    "
        return short + "--" + option.name + (option.valueName.map { " <\($0)>" } ?? "")
    }

    /// A flag that is on by default is listed by the option that turns it off.
    private static func negation(_ option: FetchOption) -> String {
        ["progress-meter", "clobber", "keepalive", "alpn", "sessionid"].contains(option.name)
            ? " --no-\(option.name): not." : ""
    }
}

import Rondo
import RondoLab

/// The lines of `-v`, with curl's marks: `*` for actions, `>` for sent and `<` for received lines.
enum DiagnosticLines {
    static func text(for diagnostic: URLConnection.Diagnostic) -> String {
        let (address, head, reason) = (
            diagnostic.address ?? "", diagnostic.head ?? "", diagnostic.reason ?? ""
        )
        switch diagnostic.kind {
        case .resolving: return "* Looking up \(diagnostic.host ?? "")\n"
        case .connecting: return "* Connecting to \(address)\n"
        case .connected: return "* Connected to \(address)\n"
        case .secured:
            let words = [diagnostic.version, diagnostic.cipher, diagnostic.subject.map { "for \($0)" }]
            return "* \(words.compactMap(\.self).joined(separator: ", "))\n"
        case .reusing: return "* Using the connection to \(address) again\n"
        case .requestHead: return marked(head, ">")
        case .responseHead: return marked(TerminalText.harmless(head), "<")
        case .closed: return "* Closed: \(reason)\n"
        case .unusableCredential: return "* \(reason)\n"
        // A kind of a later version.
        default: return "* \(diagnostic.kind)\n"
        }
    }

    /// Puts a mark before each line and removes secrets, because people paste these lines into reports.
    private static func marked(_ head: String, _ mark: String) -> String {
        lines(of: head).map { line in
            let name = line.prefix { $0 != ":" }.lowercased()
            let isSecret = ["authorization", "proxy-authorization", "cookie", "set-cookie"].contains(name)
            return "\(mark) \(isSecret ? line.prefix { $0 != ":" } + ": [hidden]" : line[...])\n"
        }.joined()
    }

    private static func lines(of head: String) -> [String] {
        var lines = head.replacingOccurrences(of: "\r\n", with: "\n").components(separatedBy: "\n")
        while lines.last == "" { lines.removeLast() }
        return lines
    }
}

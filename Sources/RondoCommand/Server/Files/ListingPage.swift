import Rondo
import RondoLab

/// The page of a folder.
enum ListingPage {
    /// - Parameter path: Decoded, with a slash at its end.
    static func html(_ listing: FolderListing, path: [UInt8]) -> String {
        var rows = ""
        if !listing.isRoot {
            rows += row(link: "../", name: "..", kind: "up", size: "", date: "", machineDate: "")
        }
        for entry in listing.entries {
            let name = String(decoding: entry.name, as: UTF8.self)
            // Without "./" a name with a colon would be read as a URL with a scheme.
            let link = "./" + TargetPath.encodedName(entry.name) + (entry.isFolder ? "/" : "")
            rows += row(
                link: link, name: name + (entry.isFolder ? "/" : ""),
                kind: entry.isFolder ? "folder" : "file",
                size: entry.isFolder ? "" : TextFormats.bytes(entry.size),
                date: date(entry.modified, "%Y-%m-%d %H:%M"), machineDate: date(entry.modified, "%FT%T%z"))
        }
        let count = listing.entries.count
        var summary =
            count == 0 ? "Nothing in here." : count == 1 ? "1 entry" : "\(TextFormats.grouped(count)) entries"
        if listing.isCut { summary += "; there are more, which this page does not list" }
        let title = String(decoding: path, as: UTF8.self)
        return page(
            title: title, heading: breadcrumbs(path),
            body: "<ul>\n\(rows)</ul>\n<p class=\"quiet\">\(HTML.escaped(summary))</p>\n")
    }

    /// The page at `/` if no folder is served.
    static func withoutFolder(size: Int) -> String {
        page(
            title: "Made-up bytes", heading: "Made-up bytes",
            body: """
                <p>No folder is served here.</p>
                <ul>
                \(row(link: "/bytes", name: "bytes", kind: "file", size: TextFormats.bytes(size), date: "", machineDate: ""))\
                </ul>

                """)
    }

    private static func row(
        link: String, name: String, kind: String, size: String, date: String, machineDate: String
    ) -> String {
        let time = date.isEmpty ? "" : "<time datetime=\"\(machineDate)\">\(date)</time>"
        return """
            <li class="\(kind)"><a href="\(HTML.escaped(link))">\(HTML.escaped(name))</a>\
            <span>\(size)</span>\(time)</li>

            """
    }

    private static func breadcrumbs(_ path: [UInt8]) -> String {
        let parts = path.split(separator: UInt8(ascii: "/"))
        guard !parts.isEmpty else { return "This folder" }
        var html = "<a href=\"/\">top</a>"
        var link = "/"
        for (index, part) in parts.enumerated() {
            link += TargetPath.encodedName(part) + "/"
            let name = HTML.escaped(String(decoding: part, as: UTF8.self))
            html +=
                " / " + (index == parts.count - 1 ? name : "<a href=\"\(HTML.escaped(link))\">\(name)</a>")
        }
        return html
    }

    /// The date in this machine's time zone.
    private static func date(_ seconds: Int, _ format: String) -> String {
        var moment = time_t(seconds)
        var parts = tm()
        guard localtime_r(&moment, &parts) != nil else { return "" }
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, format, &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func page(title: String, heading: String, body: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(HTML.escaped(title))</title>
        <style>
        \(style)
        </style>
        </head>
        <body>
        <h1>\(heading)</h1>
        \(body)<footer>Served by <code>rondo serve</code>. <code>/bytes/COUNT</code> has as many bytes as it says, the \
        same each time: <a href="/bytes/1000000">/bytes/1000000</a>.</footer>
        </body>
        </html>

        """
    }

    private static let style = """
        :root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d2430; --quiet: #5c6675; --line: #d9d6cd;
          --link: #2456b8; --panel: #f1efe8; }
        @media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e7e9ee; --quiet: #a0a8b5;
          --line: #323a46; --link: #8fb2f6; --panel: #1c222b; } }
        * { box-sizing: border-box; }
        html { background: var(--paper); color: var(--ink); -webkit-text-size-adjust: 100%; }
        body { margin: 0 auto; max-width: 60rem; padding: 1.25rem clamp(.75rem, 3vw, 2rem) 3rem;
          font: 1rem/1.5 system-ui, "Noto Sans", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
        h1 { font-size: clamp(1.2rem, 4vw, 1.6rem); line-height: 1.3; margin: 0 0 1rem; }
        a { color: var(--link); text-underline-offset: .2em; }
        a:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; border-radius: 2px; }
        ul { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
        li { display: grid; grid-template-columns: minmax(0, 1fr) 6rem 10rem; gap: 0 1rem; align-items: baseline;
          border-bottom: 1px solid var(--line); }
        li:hover { background: var(--panel); }
        li a { text-decoration: none; padding: .4rem .25rem; } li a:hover { text-decoration: underline; }
        .folder a, .up a { font-weight: 600; }
        li span, li time { color: var(--quiet); text-align: right; font-size: .875rem; white-space: nowrap;
          font-variant-numeric: tabular-nums; padding-right: .25rem; }
        @media (max-width: 38rem) { li { grid-template-columns: minmax(0, 1fr) auto; }
          li time { grid-column: 1 / -1; text-align: left; padding: 0 .25rem .4rem; margin-top: -.4rem; } }
        .quiet, footer { color: var(--quiet); } footer { margin-top: 2.5rem; font-size: .875rem; }
        code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9em; }
        """
}

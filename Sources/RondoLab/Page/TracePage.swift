package import RondoTrace

/// The page of one recording, which `rondo trace` writes.
package enum TracePage {
    /// - Parameters:
    ///   - title: The name of the recorded program.
    ///   - id: The identifier of the figure.
    package static func html(_ recording: Recording, title: String) -> String {
        let duration = TextFormats.fixed(Double(recording.ended - recording.began) / 1e9, digits: 3)
        let body =
            "<header>\n" + HTML.element("h1", title)
            + HTML.element(
                "p", class: "quiet",
                "What its run loops did in \(duration) s. Nothing was loaded for this page.")
            + "</header>\n<main>\n"
            + PageParts.timeline(recording, id: "recording", title: "All run loops")
            + "<h2>How to read it</h2>\n" + PageParts.key + PageParts.keys + "</main>"
        return PageParts.page(title: title, body: body)
    }
}

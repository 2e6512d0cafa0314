import Rondo
import RondoHTTP

/// The validators of a representation's version (RFC 9110, section 8.8), and the evaluation of a request's
/// conditions (section 13).
struct Validators: Equatable {
    /// A strong entity tag, with its quotes.
    let tag: String
    /// Whole seconds, as in the field.
    let modified: Date

    /// - Parameter modified: A time in the future counts as now: otherwise a client would not notice later
    ///   changes.
    init(tag: String, modified: Date, now: Date) {
        self.tag = "\"\(tag)\""
        self.modified = Date(
            timeIntervalSince1970: min(modified, now).timeIntervalSince1970.rounded(.down))
    }

    enum Judgement: Equatable {
        /// Answer the request, with or without regard to its Range field.
        case answer(heedsRange: Bool)
        case notModified
        case preconditionFailed
    }

    /// Evaluates the conditions in the order of section 13.2.2.
    func judge(_ fields: HeaderFields, now: Date) -> Judgement {
        if let tags = fields["If-Match"] {
            // This is a strong comparison: a weak tag never matches.
            guard lists(tags, isWeakEnough: false) else { return .preconditionFailed }
        } else if let date = fields["If-Unmodified-Since"].flatMap({ HTTPDate.parse($0, now: now) }) {
            guard modified <= date else { return .preconditionFailed }
        }
        if let tags = fields["If-None-Match"] {
            if lists(tags, isWeakEnough: true) { return .notModified }
        } else if let date = fields["If-Modified-Since"].flatMap({ HTTPDate.parse($0, now: now) }) {
            if modified <= date { return .notModified }
        }
        return .answer(heedsRange: fields["If-Range"].map { isTheSame($0, now: now) } ?? true)
    }

    /// True if the client's part is of this version.
    private func isTheSame(_ ifRange: String, now: Date) -> Bool {
        if ifRange.hasPrefix("\"") || ifRange.hasPrefix("W/") { return ifRange == tag }
        // A file may have been changed twice within a second (section 8.8.2.2).
        return HTTPDate.parse(ifRange, now: now) == modified && now.timeIntervalSince(modified) >= 1
    }

    private func lists(_ field: String, isWeakEnough: Bool) -> Bool {
        if field == "*" { return true }
        var rest = field[...]
        while let start = rest.firstIndex(of: "\"") {
            let isWeak = rest[..<start].hasSuffix("W/")
            guard let end = rest[rest.index(after: start)...].firstIndex(of: "\"") else { return false }
            if rest[start...end] == tag, isWeakEnough || !isWeak { return true }
            rest = rest[rest.index(after: end)...]
        }
        return false
    }
}

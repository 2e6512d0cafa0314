import Rondo
import RondoHTTP

/// Parses the dates of `-z`.
enum TimeText {
    /// A `-` in front means earlier than the date. The name of a file stands for its time of modification.
    /// Nil if the text is neither a date nor the name of a file; curl loads nevertheless then.
    static func condition(_ text: String) -> FetchOperation.TimeCondition? {
        let isEarlier = text.first == "-"
        let rest = isEarlier || text.first == "+" || text.first == "=" ? String(text.dropFirst()) : text
        guard let date = date(rest) ?? fileTime(rest) else { return nil }
        return isEarlier ? .unmodifiedSince(date) : .modifiedSince(date)
    }

    static func date(_ text: String) -> Date? {
        if let date = HTTPDate.parse(text) { return date }
        guard let (text, hours) = separatingZone(of: text) else { return nil }
        return dateInGMT(text)?.addingTimeInterval(-3600 * hours)
    }

    /// The text without its time zone, and the hours that the zone is ahead of GMT. Nil if a word is neither
    /// a day or month nor a zone.
    private static func separatingZone(of text: String) -> (text: String, hours: Double)? {
        var zone: (range: Range<String.Index>, hours: Double)?
        for word in text.matches(of: /[A-Za-z]+/) {
            let name = word.output.lowercased()
            if names.contains(String(name.prefix(3))) { continue }
            guard zone == nil, let hours = zones[name] else { return nil }
            zone = (word.range, hours)
        }
        if zone == nil, let match = text.firstMatch(of: /[+\-]([0-9]{2})([0-9]{2})(?![0-9])/),
            let hours = Double(match.1), let minutes = Double(match.2), hours <= 14
        {
            let offset = hours + minutes / 60
            zone = (match.range, text[match.range].hasPrefix("-") ? -offset : offset)
        }
        guard let found = zone else { return (text, 0) }
        return (String(text[..<found.range.lowerBound] + text[found.range.upperBound...]), found.hours)
    }

    /// The beginnings of names of days and months.
    private static let names: Set = [
        "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul",
        "aug", "sep", "oct", "nov", "dec",
    ]

    /// The zones that curl knows.
    private static let zones: [String: Double] = [
        "gmt": 0, "ut": 0, "utc": 0, "z": 0, "wet": 0, "bst": 1, "wat": -1, "ast": -4, "adt": -3, "est": -5,
        "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "yst": -9, "ydt": -8,
        "hst": -10, "hdt": -9, "cat": -10, "ahst": -10, "nt": -11, "idlw": -12, "cet": 1, "met": 1, "mewt": 1,
        "mest": 2, "cest": 2, "mesz": 2, "fwt": 1, "fst": 2, "eet": 2, "wast": 7, "wadt": 8, "cct": 8,
        "jst": 9, "east": 10, "eadt": 11, "gst": 10, "nzt": 12, "nzst": 12, "nzdt": 13, "idle": 12,
    ]

    private static func dateInGMT(_ given: String) -> Date? {
        let text = given.trimmingCharacters(in: .whitespaces)
        if let match = text.wholeMatch(of: /(\d{4})(\d{2})(\d{2})(?: (\d{2}:\d{2}(?::\d{2})?))?/) {
            let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            guard let month = Int(match.2), (1...12).contains(month) else { return nil }
            let time = match.4.map { $0.count < 8 ? $0 + ":00" : String($0) } ?? "00:00:00"
            return CookieDate.parse("\(match.3) \(months[month - 1]) \(match.1) \(time) GMT")
        }
        return CookieDate.parse(text) ?? CookieDate.parse(text + " 00:00:00 GMT")
    }

    private static func fileTime(_ path: String) -> Date? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.st_mtim.tv_sec))
    }
}

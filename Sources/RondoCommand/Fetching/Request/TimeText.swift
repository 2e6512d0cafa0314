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

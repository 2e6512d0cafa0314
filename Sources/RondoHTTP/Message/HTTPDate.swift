package import struct Foundation.Date

/// Dates in header fields (RFC 9110 §5.6.7), to the second, in GMT.
///
///     Sun, 06 Nov 1994 08:49:37 GMT     written, and mostly read
///     Sunday, 06-Nov-94 08:49:37 GMT    RFC 850, read only
///     Sun Nov  6 08:49:37 1994          asctime, read only
package enum HTTPDate {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

    // MARK: Reading

    /// Returns nil if `text` has none of the three forms, or is not a date: `Expires: 0` and `-1`
    /// deliberately are not.
    ///
    /// - Parameter now: Determines the century of a year with two digits: a year more than 50 years ahead is
    ///   in the past (§5.6.7).
    package static func parse(_ text: String, now: Date = Date()) -> Date? {
        if let date = parseUsual(text) { return date }
        let words = text.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" }).map(String.init)
        switch words.count {
        case 6 where ["GMT", "UTC"].contains(words[5].uppercased()):
            // The first two forms: weekday, day, month, year, time, zone.
            guard text.contains(","), let year = year(words[3], now: now) else { return nil }
            return date(year: year, month: words[2], day: words[1], time: words[4])
        case 5:
            // asctime: weekday, month, day, time, year.
            guard words[4].utf8.count == 4, let year = year(words[4], now: now) else { return nil }
            return date(year: year, month: words[1], day: words[2], time: words[3])
        default:
            return nil
        }
    }

    /// Reads the first form exactly, byte by byte, since nearly every date has it: for a response found in
    /// the cache four dates are read, which took 8 µs when they were split into words.
    ///
    /// - Returns: Nil if the text has another form.
    private static func parseUsual(_ text: String) -> Date? {
        text.utf8.withContiguousStorageIfAvailable { bytes -> Date? in
            guard bytes.count == usualForm.utf8CodeUnitCount else { return nil }
            for (byte, form) in zip(bytes, usualForm.utf8Bytes) {
                switch form {
                case UInt8(ascii: "0"): if !Grammar.isDigit(byte) { return nil }
                case UInt8(ascii: "a"): if Grammar.lowercased(byte) &- 0x61 >= 26 { return nil }
                default: if byte != form { return nil }
                }
            }
            let number = { (range: Range<Int>) in bytes[range].reduce(0) { $0 * 10 + Int($1 - 0x30) } }
            guard let month = monthNames.firstIndex(where: { $0.elementsEqual(bytes[8..<11]) }) else {
                return nil
            }
            return date(
                year: number(12..<16), month: month + 1, day: number(5..<7), hour: number(17..<19),
                minute: number(20..<22), second: number(23..<25))
        } ?? nil
    }

    /// `0` stands for a digit, `a` for a letter.
    private static let usualForm: StaticString = "aaa, 00 aaa 0000 00:00:00 GMT"
    private static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ].map { Array($0.utf8) }

    /// Reads one of the three forms exactly, in any case; returns nil for a text that only resembles one. For
    /// Expires, where a malformed date has to count as past (RFC 9111 §5.3).
    package static func parse(exactly text: String, now: Date = Date()) -> Date? {
        let shape = text.utf8.map { byte -> UInt8 in
            if Grammar.isDigit(byte) { return UInt8(ascii: "0") }
            return Grammar.lowercased(byte) &- 0x61 < 26 ? UInt8(ascii: "a") : byte
        }
        let behindDay = shape.drop { $0 == UInt8(ascii: "a") }
        let isForm =
            shape.elementsEqual("aaa, 00 aaa 0000 00:00:00 aaa".utf8)
            || (6...9 ~= behindDay.startIndex && behindDay.elementsEqual(", 00-aaa-00 00:00:00 aaa".utf8))
            || shape.elementsEqual("aaa aaa 00 00:00:00 0000".utf8)
            || shape.elementsEqual("aaa aaa  0 00:00:00 0000".utf8)
        guard isForm else { return nil }
        let isInGMT = text.utf8.last.map(Grammar.isDigit) ?? false || text.lowercased().hasSuffix(" gmt")
        return isInGMT ? parse(text, now: now) : nil
    }

    private static func year(_ text: String, now: Date) -> Int? {
        guard let number = number(text), [2, 4].contains(text.utf8.count) else { return nil }
        guard text.utf8.count == 2 else { return number }
        let thisYear = civil(days(since1970: now)).year
        let year = thisYear - thisYear % 100 + number
        return year > thisYear + 50 ? year - 100 : year
    }

    private static func date(year: Int, month: String, day: String, time: String) -> Date? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 2 }), (1...2) ~= day.utf8.count,
            let month = months.firstIndex(of: month.lowercased()), let day = number(day),
            let hour = number(String(parts[0])), let minute = number(String(parts[1])),
            let second = number(String(parts[2]))
        else { return nil }
        // 60 is a leap second.
        guard second <= 60 else { return nil }
        let leap = second == 60 ? 1 : 0
        return Self.date(
            year: year, month: month + 1, day: day, hour: hour, minute: minute, second: second - leap)?
            .addingTimeInterval(Double(leap))
    }

    /// Returns nil if there is no such instant, and before 1601.
    static func date(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) -> Date? {
        guard year >= 1601, 1...12 ~= month, day >= 1, hour < 24, minute < 60, second < 60 else { return nil }
        let days = daysFromCivil(year: year, month: month, day: day)
        // A day that the month does not have comes out as one of the next month.
        guard civil(days).day == day else { return nil }
        return Date(timeIntervalSince1970: Double(days * 86_400 + hour * 3_600 + minute * 60 + second))
    }

    private static func number(_ text: String) -> Int? {
        text.utf8.allSatisfy(Grammar.isDigit) ? Int(text) : nil
    }

    // MARK: Writing

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    package static func format(_ date: Date) -> String {
        let seconds = Int(
            max(-11_644_473_600, min(date.timeIntervalSince1970, 253_402_300_799)).rounded(.down))
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        let weekday = weekdays[((days + 4) % 7 + 7) % 7]
        let name = months[month - 1].prefix(1).uppercased() + months[month - 1].dropFirst()
        let time = [rest / 3_600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(weekday), \(padded(day, 2)) \(name) \(padded(year, 4)) \(time) GMT"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }

    // MARK: The calendar

    private static func days(since1970 date: Date) -> Int {
        // A date that a file gives may be any.
        Int((max(.distantPast, min(date, .distantFuture)).timeIntervalSince1970 / 86_400).rounded(.down))
    }

    // Days and dates of the Gregorian calendar, by eras of 400 years that begin on 1 March.

    private static func daysFromCivil(year: Int, month: Int, day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthIndex = (5 * dayOfYear + 2) / 153
        let month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthIndex + 2) / 5 + 1
        )
    }
}

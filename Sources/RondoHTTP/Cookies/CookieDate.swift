package import Foundation

/// Reads the date in a cookie's Expires by RFC 6265 §5.1.1: any text that contains a time, a day, a month and
/// a year, in any order.
package enum CookieDate {
    package static func parse(_ text: String) -> Date? {
        var found = Found()
        for token in text.utf8.split(whereSeparator: isDelimiter) { found.take(Array(token)) }
        guard let (hour, minute, second) = found.time, let day = found.day, let month = found.month,
            let year = found.year
        else { return nil }
        return HTTPDate.date(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// %x09 / %x20-2F / %x3B-40 / %x5B-60 / %x7B-7E
    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    private struct Found {
        var time: (Int, Int, Int)?
        var day: Int?
        var month: Int?
        var year: Int?

        /// Takes a token. The first of each kind is used; the kinds are tried in this order.
        mutating func take(_ token: [UInt8]) {
            if time == nil, let found = CookieDate.time(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = CookieDate.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found < 70 ? found + 2000 : found < 100 ? found + 1900 : found
            }
        }

        private func number(_ token: [UInt8], digits: ClosedRange<Int>) -> Int? {
            CookieDate.number(token[...], digits: digits)
        }
    }

    /// Reads a number that has this many digits and is followed by no further digit.
    private static func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let text = token.prefix(while: Grammar.isDigit)
        return digits ~= text.count ? text.reduce(0) { $0 * 10 + Int($1 - 0x30) } : nil
    }

    private static func time(_ token: [UInt8]) -> (Int, Int, Int)? {
        let parts = token.split(separator: Grammar.colon, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(Grammar.isDigit), parts[1].allSatisfy(Grammar.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    private static func month(_ token: [UInt8]) -> Int? {
        months.firstIndex { Grammar.equalIgnoringCase(token.prefix(3), $0.utf8) }.map { $0 + 1 }
    }
}

import Foundation
import RondoHTTP
import Testing

@Suite struct HTTPDateTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)  // in 2023

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 6 Nov 1994 08:49:37 GMT", "sun, 06 nov 1994 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 UTC",
    ])
    func `RFC 9110 5.6.7 the three forms of a date are read`(_ text: String) {
        #expect(HTTPDate.parse(text, now: now) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 06 Nov 1994",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 194 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov +994 08:49:37 GMT", "Sun, 06 Now 1994 08:49:37 GMT", "Sun Nov  6 08:49:37 94",
        "Sun, 06 Nov 1994 08:60:37 GMT", "784111777",
    ])
    func `a text that is not a date is not parsed`(_ text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test(arguments: [("73", 2073), ("74", 1974), ("23", 2023), ("00", 2000), ("99", 1999)])
    func `RFC 9110 5.6.7 a year of two digits is at most 50 years ahead`(_ text: String, _ year: Int) throws {
        let date = try #require(HTTPDate.parse("Sunday, 06-Nov-\(text) 08:49:37 GMT", now: now))
        #expect(HTTPDate.format(date).contains(" Nov \(year) "))
    }

    @Test func `dates are written as the system does, in every year`() throws {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let date = Date(
                timeIntervalSince1970: Double(Int.random(in: -8_000_000_000...9_000_000_000, using: &random)))
            let text = HTTPDate.format(date)
            #expect(text == formatter.string(from: date))
            #expect(HTTPDate.parse(text, now: now) == date)
        }
    }

    @Test func `a leap second is the second after the one before`() {
        #expect(
            HTTPDate.parse("Sat, 31 Dec 2016 23:59:60 GMT", now: now)
                == HTTPDate.parse("Sun, 01 Jan 2017 00:00:00 GMT", now: now))
    }

    /// No date is before 1601, and so no year with two digits is near such a date.
    @Test(arguments: [(1e300, true), (.infinity, true), (-1e300, false), (-.infinity, false)])
    func `a two-digit year is read beside any date`(seconds: Double, isDate: Bool) {
        let now = Date(timeIntervalSince1970: seconds)
        #expect((HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: now) != nil) == isDate)
    }
}

import Rondo
import RondoHTTP
import Testing

@testable import RondoCommand

/// The time between two tries, as a value.
struct RetryDelayTests {
    private func delay(
        _ words: String..., after retries: Int = 0, retryAfter: String? = nil, elapsed: Double = 0
    ) throws -> Double? {
        RetryDelay.seconds(
            try FetchCommandLine(words + ["u"]).operations[0], retries: retries, retryAfter: retryAfter,
            elapsed: elapsed, now: Date(timeIntervalSince1970: 1_700_000_000))
    }

    @Test func `the delay of a retry doubles up to ten minutes, or is that of --retry-delay`() throws {
        #expect(try (0...2).map { try delay(after: $0) } == [1, 2, 4])
        #expect(try delay(after: 100) == 600)
        #expect(try delay("--retry-delay", "7", after: 3) == 7)
        #expect(try delay("--retry-delay", "0", after: 3) == 8)
    }

    @Test func `a server says how long to wait, in seconds or by a date`() throws {
        #expect(try delay(retryAfter: "30") == 30)
        #expect(try delay("--retry-delay", "1", retryAfter: "30") == 30)
        #expect(try delay(retryAfter: "9999999") == 3600)
        let date = { (seconds: Double) in
            HTTPDate.format(Date(timeIntervalSince1970: 1_700_000_000 + seconds))
        }
        #expect(try delay("--retry-delay", "1", retryAfter: date(40)) == 40)
        for nothing in ["0", "-1", "soon", "", date(-40), date(0)] {
            #expect(try delay(after: 2, retryAfter: nothing) == 4, "\(nothing)")
        }
    }

    @Test func `no retry begins later than --retry-max-time allows`() throws {
        #expect(try delay("--retry-max-time", "5", elapsed: 4) == 1)
        #expect(try delay("--retry-max-time", "5", elapsed: 6) == nil)
        #expect(try delay("--retry-max-time", "5", retryAfter: "6") == nil)
        #expect(try delay("--retry-max-time", "0", retryAfter: "6", elapsed: 9) == 6)
    }
}

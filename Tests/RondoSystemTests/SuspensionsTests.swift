import Testing

@testable import RondoSystem

/// The balance of `suspend()` and `resume()`, as a value.
@Suite struct SuspensionsTests {
    @Test func `PR-18 only the resume that undoes the last suspend lets the child continue`() {
        var suspensions = Suspensions()
        suspensions.suspend()
        suspensions.suspend()
        let first = suspensions.resume()
        let second = suspensions.resume()
        #expect(!first && second)
        // Again.
        suspensions.suspend()
        let third = suspensions.resume()
        #expect(third)
    }

    @Test func `PR-18 a resume too many sends nothing and counts for a later suspend`() {
        var suspensions = Suspensions()
        let early = suspensions.resume()
        suspensions.suspend()
        let balanced = suspensions.resume()
        suspensions.suspend()
        suspensions.suspend()
        let last = suspensions.resume()
        #expect(!early && !balanced && last)
    }
}

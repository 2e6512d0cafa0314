import Testing

@testable import RondoSystem

/// The balance of `suspend()` and `resume()`, as a value.
@Suite struct SuspensionsTests {
    /// Suspends at an `s` and resumes at an `r`.
    ///
    /// - Parameter isRunning: Whether the child gets the signals.
    /// - Returns: After each call its signal, if it sends one, and an `x` if it fails.
    private func play(_ calls: String, on suspensions: inout Suspensions, isRunning: Bool = true) -> [String]
    {
        calls.map { call in
            var sent = ""
            let isDone =
                if call == "s" {
                    suspensions.suspend {
                        sent += "STOP"
                        return isRunning
                    }
                } else {
                    suspensions.resume {
                        sent += "CONT"
                        return isRunning
                    }
                }
            return sent + (isDone ? "" : "x")
        }
    }

    @Test(arguments: [
        ("s r", ["STOP", "CONT"]),
        ("s s r r s r", ["STOP", "STOP", "", "CONT", "STOP", "CONT"]),
        // A resume too many sends nothing and counts for a later suspend.
        ("r s r s s r", ["", "STOP", "", "STOP", "STOP", "CONT"]),
    ])
    func `PR-18 only the resume that undoes the last suspend lets the child continue`(
        calls: String, sent: [String]
    ) {
        var suspensions = Suspensions()
        let found = play(calls.filter { $0 != " " }, on: &suspensions)
        #expect(found == sent)
    }

    @Test func `PR-18 a call whose signal the child does not get counts nothing`() {
        var suspensions = Suspensions()
        let first = play("s", on: &suspensions, isRunning: false)
        let second = play("s", on: &suspensions)
        let third = play("rr", on: &suspensions, isRunning: false)
        let last = play("r", on: &suspensions)
        #expect(first == ["STOPx"] && second == ["STOP"] && third == ["CONTx", "CONTx"] && last == ["CONT"])
    }
}

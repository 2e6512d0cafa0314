package import RondoCore

/// Threads that can be joined, which Foundation's cannot: when they are over, nothing of them is left.
package enum JoinedThreads {
    /// The work of a new thread, on its way there through C.
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Calls `body` on so many threads at once, with the number of the thread, and waits for their ends.
    ///
    /// - Returns: False: a thread has not ended within so many seconds; it goes on.
    package static func run(
        _ count: Int, within seconds: Double, _ body: @escaping @Sendable (Int) -> Void
    ) -> Bool {
        let working = DispatchGroup()
        let threads = (0..<count).map { number in
            working.enter()
            return start {
                body(number)
                working.leave()
            }
        }
        guard working.wait(timeout: .now() + seconds) == .success else { return false }
        for thread in threads { pthread_join(thread, nil) }
        return true
    }

    /// Calls `body` on a new thread, which the caller has to join.
    package static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t {
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                // The one reference that was handed over below.
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(body)).toOpaque())
        precondition(status == 0, "no thread could be made: \(String(cString: strerror(status)))")
        return thread
    }
}

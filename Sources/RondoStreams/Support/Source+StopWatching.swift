internal import RondoCore

extension RunLoop.Source {
    /// Stops watching, unless the owner waits for what is watched.
    ///
    /// - Parameters:
    ///   - interest: What is watched.
    ///   - isWaitedFor: Asked afterwards: an owner that has begun to wait on another thread meanwhile may
    ///     have found the source watched, and relies on that.
    func stopWatching(_ interest: Interest, unless isWaitedFor: () -> Bool) {
        self.interest = []
        if isWaitedFor() { self.interest = interest }
    }
}

internal import RondoCore

extension LoopMode {
    /// The mode in which the sockets of streams with a dispatch queue are driven.
    static var loader: LoopMode { .init(loop: .loader, mode: .default) }

    func add(_ source: RunLoop.Source) { loop.add(source, forMode: mode) }

    /// - Parameter modes: The other modes of the source's owner.
    func remove(_ source: RunLoop.Source, keeping modes: [LoopMode]) {
        loop.remove(source, forMode: mode, keeping: modes)
        // A loop of another thread, as the loader's is, releases the source when it wakes up.
        if !loop.isCurrent { loop.wakeUp() }
    }
}

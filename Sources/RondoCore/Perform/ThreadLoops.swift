internal import RondoMutex

/// The loops of Foundation's threads, and the blocks performed on threads that have no loop yet.
enum ThreadLoops {
    private struct Entry {
        /// Retained, so that no other thread gets its address while the entry exists.
        let thread: Thread
        let loop: RunLoop
    }

    private struct Waiting {
        let thread: Thread
        var blocks: [(block: PerformedBlock, modes: [RunLoop.Mode])]
    }

    private struct Ended {
        weak var thread: Thread?
    }

    /// The loops and blocks by thread. `@unchecked Sendable`: guarded by the lock below. A `Thread` is only
    /// compared and asked whether it has finished, which any thread may do; a block is handed to its loop or
    /// released.
    private struct State: @unchecked Sendable {
        // By the address of the thread. (`ObjectIdentifier` keys would also delay the first loop of a
        // process: see `LoopState.indices`.)
        var entries: [UInt: Entry] = [:]
        var waiting: [UInt: Waiting] = [:]
        /// Threads whose loop has ended, as long as they are retained elsewhere: a thread that Foundation did
        /// not make does not report that it has finished.
        var ended: [UInt: Ended] = [:]
        /// When the list is longer than this, entries of freed threads are removed from it.
        var endedLimit = 64

        func hasEnded(_ thread: Thread) -> Bool {
            thread.isFinished || ended[key(thread)]?.thread === thread
        }

        mutating func noteEnd(of thread: Thread) {
            ended[key(thread)] = Ended(thread: thread)
            guard ended.count > endedLimit else { return }
            ended = ended.filter { $0.value.thread != nil }
            endedLimit = 2 * ended.count + 64
        }
    }

    private static let state = Mutex(State())

    /// The address of `thread`, which is only compared.
    private static func key(_ thread: Thread) -> UInt {
        UInt(bitPattern: Unmanaged.passUnretained(thread).toOpaque())
    }

    /// Records the calling thread's loop, and hands over the blocks that were performed on the thread before.
    ///
    /// - Returns: The key for `forget(_:_:)`.
    static func note(_ loop: RunLoop, of thread: Thread) -> UInt {
        let key = key(thread)
        state.withLock { state in
            state.entries[key] = Entry(thread: thread, loop: loop)
            state.ended[key] = nil
            // Under the lock, so that blocks which other threads perform from now on come after these.
            for entry in state.waiting.removeValue(forKey: key)?.blocks ?? [] {
                loop.perform(entry.block, inModes: entry.modes)
            }
        }
        return key
    }

    /// To be called when the thread of `loop` ends.
    static func forget(_ loop: RunLoop, _ key: UInt) {
        let released = state.withLock { state -> Entry? in
            guard let entry = state.entries[key], entry.loop === loop else { return nil }
            state.noteEnd(of: entry.thread)
            return state.entries.removeValue(forKey: key)
        }
        withExtendedLifetime(released) {}
    }

    enum Outcome {
        case performed(RunLoop)
        case waitsForLoop
        case threadEnded
    }

    /// Performs `block` on the loop of `thread`, or keeps it until the thread has a loop. A block for a
    /// thread that has finished is released.
    static func perform(_ block: PerformedBlock, on thread: Thread, inModes modes: [RunLoop.Mode]) -> Outcome
    {
        let loop = loop(of: thread)
        if let loop {
            loop.perform(block, inModes: modes)
            return loop.isAlive ? .performed(loop) : .threadEnded
        }
        let (found, hasEnded, released) = state.withLock { state -> (RunLoop?, Bool, [Waiting]) in
            let key = key(thread)
            // The thread has made its loop meanwhile.
            if let entry = state.entries[key] { return (entry.loop, false, []) }
            let finished = state.waiting.filter { state.hasEnded($0.value.thread) }
            for key in finished.keys { state.waiting[key] = nil }
            let hasEnded = state.hasEnded(thread)
            if !hasEnded {
                state.waiting[key, default: Waiting(thread: thread, blocks: [])].blocks.append((block, modes))
            }
            return (nil, hasEnded, Array(finished.values))
        }
        // Released after the lock, because the deinit of a captured object may call back.
        withExtendedLifetime(released) {}
        if let found {
            found.perform(block, inModes: modes)
            return .performed(found)
        }
        return hasEnded ? .threadEnded : .waitsForLoop
    }

    /// The loop of `thread`; nil if there is none yet, or it has ended.
    static func loop(of thread: Thread) -> RunLoop? {
        if thread.isMainThread { return .main }
        return state.withLock { $0.entries[key(thread)]?.loop }
    }

    /// The loops of all threads that have one.
    static var all: [RunLoop] { state.withLock { $0.entries.values.map(\.loop) } }

    /// Whether `thread`, or its loop, is known to have ended.
    static func hasEnded(_ thread: Thread) -> Bool { state.withLock { $0.hasEnded(thread) } }

    /// Releases the blocks performed on a thread that has finished without a loop.
    static func releaseIfFinished(_ thread: Thread) {
        guard hasEnded(thread) else { return }
        let released = state.withLock { $0.waiting.removeValue(forKey: key(thread)) }
        withExtendedLifetime(released) {}
    }
}

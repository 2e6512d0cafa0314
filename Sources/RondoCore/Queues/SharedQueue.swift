// Why streams and loads share a source.
//
// An idle stream should cost little, and a source of its own would cost more than all the rest of it. A load
// is short: adding a source to a loop and removing it again would take longer than the load. So all streams
// and loads of one loop and mode share one signalled source, which keeps the mode from being empty, and a
// queue of clients to serve. A program cannot tell the difference: clients are served in the order in which
// they were enqueued, a run that returns after a source returns after the first client that has called the
// program (rule RL-37), and a nested run serves the clients behind the client that runs it.
//
// Threads: the shared queues of a loop are found and made under that loop's `RunLoop.sharedQueues` lock,
// which is taken before the locks of sources and loops; the clients of a queue are guarded by two locks of
// the queue. A client is called with no lock held.

internal import RondoMutex

/// An object that shared queues serve: a stream, a load.
package protocol SharedQueueClient: AnyObject, Sendable {
    /// Does the work for which the client was enqueued, on the loop's thread, with no lock held. The client
    /// is no longer in `queue`.
    ///
    /// - Returns: Whether the program was called, or may have been; false if another queue has already served
    ///   the client.
    func serve(by queue: SharedQueue) -> Bool
}

/// A client that is registered with a queue, which notifies it of the queue's end and of short delays.
package protocol RegisteredClient: SharedQueueClient {
    /// The thread of the queue's loop has ended: the queue serves nothing any more. Called on that thread.
    func loopHasEnded()
    /// See `SharedQueue.Registration.notifyAfterShortDelay()`. Called on the loop's thread, in the queue's
    /// mode.
    func shortDelayHasPassed()
}

/// The queue that all streams and loads of one loop and mode share, served by one signalled source.
package final class SharedQueue: DeferredWork, Sendable {
    package let loop: RunLoop
    package let mode: RunLoop.Mode
    private let source: RunLoop.Source
    private let members = Mutex(Members())
    private let waiting = Mutex(Waiting())

    /// The clients to serve.
    private struct Waiting: ~Copyable {
        var clients = ClientQueue()
        /// The source is already signalled for the next pass: further clients need not signal it.
        var isSignalled = false
    }

    /// The members, which keep the queue in its loop.
    private struct Members: ~Copyable {
        /// The number of joins not yet followed by a leave.
        var count = 0
        /// The registered clients, indexed by registration number.
        var registrations: [Entry] = []
        var freeNumbers: [Int] = []
        var delayTimer: Timer?

        struct Entry {
            /// Nil if the number is free.
            var client: (any RegisteredClient)?
            /// The client is to be notified when the short delay has passed.
            var awaitsDelay = false
        }

        mutating func register(_ client: any RegisteredClient) -> Int {
            if let number = freeNumbers.popLast() {
                registrations[number] = Entry(client: client)
                return number
            }
            registrations.append(Entry(client: client))
            return registrations.count - 1
        }

        mutating func takeClientsThatAwaitDelay() -> [any RegisteredClient] {
            delayTimer = nil
            var found: [any RegisteredClient] = []
            for number in registrations.indices where registrations[number].awaitsDelay {
                registrations[number].awaitsDelay = false
                if let client = registrations[number].client { found.append(client) }
            }
            return found
        }
    }

    private init(_ loop: RunLoop, _ mode: RunLoop.Mode, label: String = "streams and loads") {
        self.loop = loop
        self.mode = mode
        let reference = Reference()
        source = RunLoop.Source(
            cancel: { _, _ in reference.queue.withLock { $0 }?.loopHasEnded() },
            perform: { reference.queue.withLock { $0 }?.serve() })
        source.label = label
        reference.queue.withLock { $0 = self }
    }

    /// A reference from the source's callbacks to the queue. Source and queue retain each other until the
    /// last member leaves: an invalid source releases its callbacks.
    private final class Reference: Sendable {
        let queue = Mutex<SharedQueue?>(nil)
    }

    // MARK: - Members

    /// The queue of `mode`. It keeps the mode from being empty until `leave()` has been called as often as
    /// this.
    package static func join(_ loop: RunLoop, _ mode: RunLoop.Mode) -> SharedQueue {
        loop.sharedQueues.withLock { queues in
            for queue in queues where queue.mode == mode {
                queue.members.withLock { $0.count += 1 }
                return queue
            }
            let queue = SharedQueue(loop, mode)
            queue.members.withLock { $0.count = 1 }
            queues.append(queue)
            loop.add(queue.source, forMode: mode)
            return queue
        }
    }

    /// Joins once more. The caller has already joined, and does not leave during this call.
    package func joinAgain() { members.withLock { $0.count += 1 } }

    /// To be called once for each `join`.
    package func leave() {
        // Nearly always there are other members, and nothing else has to be done.
        let isLast = members.withLock { members in
            guard members.count > 1 else { return true }
            members.count -= 1
            return false
        }
        guard isLast else { return }
        let hasLeft = loop.sharedQueues.withLock { queues -> Bool in
            let isEmpty = members.withLock { members in
                members.count -= 1
                return members.count == 0
            }
            guard isEmpty else { return false }
            // No member is left to set the timer again, and none joins while `sharedQueues` is locked.
            let timer = members.withLock { $0.delayTimer.take() }
            queues.removeAll { $0 === self }
            source.invalidate()
            timer?.invalidate()
            return true
        }
        // The mode may now be empty. Only the end of a pass checks that, and a pass that serves nothing
        // sleeps first (rule RL-32).
        if hasLeft { loop.wakeUp() }
    }

    // MARK: - Registrations

    /// A client's registration with a queue, from `join` until `leave()`.
    package struct Registration: Sendable {
        package let queue: SharedQueue
        fileprivate let number: Int

        /// To be called once.
        package func leave() {
            let client = queue.members.withLock { members in
                members.freeNumbers.append(number)
                defer { members.registrations[number] = Members.Entry() }
                return members.registrations[number].client
            }
            queue.leave()
            // Released after the lock, because its deinit may call back.
            withExtendedLifetime(client) {}
        }

        /// Makes the queue call `shortDelayHasPassed()` once, after `shortDelay` or somewhat sooner. Nearly
        /// all loads are over by then, and need not make the objects that only long ones use.
        package func notifyAfterShortDelay() { queue.notifyAfterShortDelay(number) }
    }

    /// Joins and registers `client`.
    ///
    /// - Parameter label: The name of the source in the loop. With a label the client gets a queue of its
    ///   own; nil: the shared queue.
    package static func join(
        _ loop: RunLoop, _ mode: RunLoop.Mode, label: String?, as client: any RegisteredClient
    ) -> Registration {
        guard let label else {
            let queue = join(loop, mode)
            return Registration(queue: queue, number: queue.members.withLock { $0.register(client) })
        }
        let queue = SharedQueue(loop, mode, label: label)
        let number = queue.members.withLock { members in
            members.count = 1
            return members.register(client)
        }
        loop.add(queue.source, forMode: mode)
        return Registration(queue: queue, number: number)
    }

    /// Whether the thread of the queue's loop has ended.
    package var hasLoopEnded: Bool { !source.isScheduled }

    private func loopHasEnded() {
        for client in members.withLock({ $0.registrations.compactMap(\.client) }) { client.loopHasEnded() }
    }

    /// The short delay, in seconds: with 10,000 loads in flight, each takes 0.2 s.
    package static let shortDelay = 0.5

    private func notifyAfterShortDelay(_ number: Int) {
        let timer = members.withLock { members -> Timer? in
            members.registrations[number].awaitsDelay = true
            guard members.delayTimer == nil else { return nil }
            // The timer retains the queue until it fires or the last member has left.
            let timer = Timer(timeInterval: Self.shortDelay, repeats: false) { [self] _ in
                shortDelayHasPassed()
            }
            members.delayTimer = timer
            return timer
        }
        if let timer { loop.add(timer, forMode: mode) }
    }

    private func shortDelayHasPassed() {
        for client in members.withLock({ $0.takeClientsThatAwaitDelay() }) { client.shortDelayHasPassed() }
    }

    // MARK: - Clients that wait

    /// Enqueues `client` to be served in the next pass of the mode. The caller must not enqueue it again
    /// before it is served. Any thread.
    ///
    /// - Parameter first: Whether the client goes before the others: a run that returns after a source serves
    ///   one client, and others may be enqueued faster than that.
    package func enqueue(_ client: any SharedQueueClient, first: Bool = false) {
        let isFirst = waiting.withLock { waiting in
            if first { waiting.clients.prepend(client) } else { waiting.clients.append(client) }
            defer { signal(&waiting) }
            return !waiting.isSignalled
        }
        // Only for the first client: if the source was already signalled, the loop has been woken for it.
        // (That signal may have been made on the loop's own thread.)
        if isFirst { loop.wakeUp() }
    }

    /// Does the same as `enqueue`, as deferred work if ready descriptors wait to be served: their callbacks
    /// may enqueue more clients.
    package func enqueueDeferred(_ client: any SharedQueueClient) {
        guard loop.isCurrent, loop.hasDescriptorsToServe(in: mode), loop.deferWork(self) else {
            return enqueue(client)
        }
        waiting.withLock { $0.clients.append(client) }
    }

    /// Signals the source for the clients that were enqueued deferred, if they still wait.
    package func performDeferredWork() -> Bool {
        waiting.withLock { waiting in
            guard !waiting.clients.isEmpty, !waiting.isSignalled else { return false }
            signal(&waiting)
            return true
        }
    }

    private var hasWaitingClients: Bool { waiting.withLock { !$0.clients.isEmpty } }

    /// Defers `work` of a callback on the loop's thread, if clients wait that may make it unnecessary.
    ///
    /// - Returns: False if the work has to be done now.
    package func deferWorkBehindClients(_ work: any DeferredWork) -> Bool {
        hasWaitingClients && loop.deferWork(work)
    }

    /// Removes `client` from the queue, so that it is not served.
    package func withdraw(_ client: any SharedQueueClient) {
        waiting.withLock { waiting in
            waiting.clients.remove(client)
            if waiting.clients.isEmpty { withdrawSignal(&waiting) }
        }
    }

    /// The most clients that are served in a run that returns after a source, until one calls the program.
    private static let maximumClientsOfLastService = 16

    /// Serves the clients that wait now; those enqueued meanwhile are served in the next pass. In a run that
    /// returns after a source, this stops after the first client that calls the program.
    private func serve() {
        let isLast = loop.returnsAfterSource
        var rest = waiting.withLock { waiting in
            waiting.isSignalled = false
            return waiting.clients.count
        }
        if isLast { rest = min(rest, Self.maximumClientsOfLastService) }
        while rest > 0, let client = next() {
            rest -= 1
            if client.serve(by: self) && isLast { break }
        }
        // Under the lock: otherwise a signal made in between would be lost.
        waiting.withLock { waiting in
            if waiting.clients.isEmpty { withdrawSignal(&waiting) } else { signal(&waiting) }
        }
    }

    /// Takes the next client. The source stays signalled for the clients behind it, because the client's
    /// callback may run the loop, which then serves them.
    private func next() -> (any SharedQueueClient)? {
        waiting.withLock { waiting in
            guard let client = waiting.clients.popFirst() else { return nil }
            if !waiting.clients.isEmpty { signal(&waiting) }
            return client
        }
    }

    // Called under the lock, so that no signal is withdrawn that a client relies on.

    private func signal(_ waiting: inout Waiting) {
        if !waiting.isSignalled { source.signal() }
        waiting.isSignalled = true
    }

    private func withdrawSignal(_ waiting: inout Waiting) {
        source.withdrawSignal()
        waiting.isSignalled = false
    }
}

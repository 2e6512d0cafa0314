internal import CRondoEv

/// An epoll set that a Dispatch source on the main queue watches. The set is empty except while Rondo's main
/// loop sleeps in Foundation's, so that Rondo's descriptors cause no blocks on the main queue at other times
/// (rule BR-10).
///
/// Main thread only.
final class WakingSet {
    private let set: Int32
    private let source: any DispatchSourceRead

    /// - Parameter wake: Called on the main queue when a descriptor in the set is ready.
    /// - Throws: The kernel's reason: descriptors have run out.
    init(_ wake: @escaping @Sendable () -> Void) throws(SystemError) {
        let set = try systemCall("epoll_create1") { rondo_epoll() }
        // libdispatch ends the program if it gets no descriptor for itself, so make sure that one is free.
        guard MainQueue.descriptor != nil else {
            close(set)
            throw SystemError("eventfd", code: EMFILE)
        }
        self.set = set
        source = DispatchSource.makeReadSource(fileDescriptor: set, queue: .main)
        source.setEventHandler(handler: wake)
        source.setCancelHandler { close(set) }
        source.activate()
    }

    deinit { source.cancel() }

    /// - Returns: False if the kernel refuses the descriptor.
    func add(_ descriptor: Int32) -> Bool { rondo_epoll_set(set, descriptor, 1, 0) == 0 }

    func remove(_ descriptor: Int32) { _ = rondo_epoll_set(set, descriptor, 0, 0) }
}

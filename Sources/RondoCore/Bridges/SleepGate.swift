internal import CRondoEv

/// An epoll set that a Dispatch source on the main queue watches. It is empty but while Rondo's main loop sleeps in Foundation's,
/// so that no descriptor of Rondo's makes blocks of the main queue at other times (rule BR-10).
///
/// Main thread only.
final class SleepGate {
    private let set: Int32
    private let source: any DispatchSourceRead

    /// - Parameter open: Called on the main queue when a descriptor that the gate holds is ready.
    /// - Throws: The kernel's reason: descriptors have run out.
    init(_ open: @escaping @Sendable () -> Void) throws(SystemError) {
        let set = try systemCall("epoll_create1") { rondo_epoll() }
        // libdispatch ends the program where it finds no descriptor for itself.
        guard MainQueue.descriptor != nil else {
            close(set)
            throw SystemError("eventfd", code: EMFILE)
        }
        self.set = set
        source = DispatchSource.makeReadSource(fileDescriptor: set, queue: .main)
        source.setEventHandler(handler: open)
        source.setCancelHandler { close(set) }
        source.activate()
    }

    deinit { source.cancel() }

    /// - Returns: False where the kernel refuses it.
    func hold(_ descriptor: Int32) -> Bool { rondo_epoll_set(set, descriptor, 1, 0) == 0 }

    func letGo(of descriptor: Int32) { _ = rondo_epoll_set(set, descriptor, 0, 0) }
}

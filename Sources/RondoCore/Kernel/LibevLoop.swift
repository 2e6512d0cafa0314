internal import CRondoEv

/// An `ev_loop` of libev and the number of its epoll set. Only this type destroys the `ev_loop`.
///
/// Loop's thread only.
final class LibevLoop {
    /// Nil as long as the kernel has refused an epoll set.
    private(set) var pointer: OpaquePointer?
    /// The number of the epoll set, which `OwnDescriptors` contains; -1 if there is no set.
    private(set) var setDescriptor: Int32 = -1
    /// libev has made a new epoll set in this look, or is about to.
    private(set) var wasRemade = false
    // `remaking` is called before libev makes a new epoll set; `sleepless` is started then, so that this look
    // does not sleep. Allocated here, since libev keeps their addresses until they are stopped.
    private let remaking = UnsafeMutablePointer<ev_fork>.allocate(capacity: 1)
    private let sleepless = UnsafeMutablePointer<ev_idle>.allocate(capacity: 1)

    init() {
        rondo_ev_fork_init(remaking) { loop, _, _ in epollSetWillBeRemade(loop) }
        rondo_ev_idle_init(sleepless)
    }

    deinit {
        giveUp(closing: true)
        remaking.deallocate()
        sleepless.deallocate()
    }

    /// - Parameter owner: The pointer that libev's callbacks get from `ev_userdata`; its object outlives the
    ///   `ev_loop`.
    /// - Throws: The kernel's refusal.
    func make(for owner: UnsafeMutableRawPointer) throws(SystemError) -> OpaquePointer {
        SystemFailure.beginThread()
        var code: Int32 = 0
        var made: OpaquePointer?
        OwnDescriptors.add {
            errno = 0
            made = rondo_ev_loop_new()
            code = errno
            guard let made else { return nil }
            setDescriptor = rondo_ev_epoll_descriptor(made)
            return setDescriptor
        }
        guard let made else { throw SystemError("epoll_create1", code: code == 0 ? EMFILE : code) }
        pointer = made
        ev_set_userdata(made, owner)
        ev_fork_start(made, remaking)
        return made
    }

    /// - Parameter closing: False if the program may have closed the epoll set, so that its number may now be
    ///   a file of the program's: the set is then not closed, and some memory is lost.
    func giveUp(closing: Bool) {
        guard let pointer else { return }
        ev_fork_stop(pointer, remaking)
        ev_idle_stop(pointer, sleepless)
        self.pointer = nil
        OwnDescriptors.remove(setDescriptor)
        setDescriptor = -1
        if closing { ev_loop_destroy(pointer) }
    }

    /// Notes that libev is making a new epoll set, and keeps this look from sleeping.
    func beginRemaking() {
        guard let pointer else { return }
        wasRemade = true
        ev_idle_start(pointer, sleepless)
    }

    /// Called after a look in which libev may have made a new epoll set: notes the new set's number.
    func endRemaking() {
        guard wasRemade, let pointer else { return }
        wasRemade = false
        ev_idle_stop(pointer, sleepless)
        let number = rondo_ev_epoll_descriptor(pointer)
        guard number != setDescriptor else { return }
        OwnDescriptors.remove(setDescriptor)
        setDescriptor = number
        OwnDescriptors.add { number }
    }

    /// The errno with which the kernel would refuse `descriptor`; nil if it would accept it. See
    /// `OwnDescriptors`.
    func refusal(of descriptor: Int32) -> Int32? {
        OwnDescriptors.refusal(of: descriptor, addedTo: setDescriptor)
    }

    /// Whether the number still stands for libev's epoll set, as far as the kernel can tell: the program may
    /// have closed it.
    ///
    /// - Parameters:
    ///   - descriptor: A descriptor that libev's set watches if `isWatched` is true.
    ///   - isWatched: False if that descriptor could not be added to the set; the answer is then uncertain.
    func setIsOpen(watched descriptor: Int32, isWatched: Bool) -> Bool {
        // If the descriptor was never added to the set, only an open epoll set can be checked for.
        isWatched
            ? rondo_epoll_watches(setDescriptor, descriptor) != 0
            : rondo_epoll_is_open(setDescriptor, descriptor) != 0
    }
}

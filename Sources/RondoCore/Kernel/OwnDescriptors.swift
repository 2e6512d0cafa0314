internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The numbers of the descriptors that belong to run loops themselves: epoll sets, eventfds, timerfds.
///
/// A source that watches one of these numbers was scheduled for a descriptor that has been closed since. To
/// hand the number to libev would abort the process in places (an epoll set in itself, or sets that watch
/// each other), and in others a program would read from an eventfd that is the loop's (rule SRC-27).
enum OwnDescriptors {
    // Of `Int`, as other tables are: each other type of keys costs a program's start 0.1 ms, in which the runtime searches all
    // libraries for its `Hashable` (W16).
    private static let numbers = Mutex<Set<Int>>([])

    /// Adds a descriptor. `contains` waits meanwhile, so it never misses one that exists.
    ///
    /// - Parameter make: Makes the descriptor; nil: it could not.
    static func add(_ make: () -> Int32?) {
        numbers.withLock { numbers in
            if let number = make(), number >= 0 { numbers.insert(Int(number)) }
        }
    }

    /// To be called before the descriptor is closed.
    static func remove(_ number: Int32) { numbers.withLock { _ = $0.remove(Int(number)) } }

    static func contains(_ number: Int32) -> Bool { numbers.withLock { $0.contains(Int(number)) } }

    /// The errno with which the kernel would refuse to add `descriptor` to an epoll set, in cases in which
    /// libev, as Debian builds it, aborts the process; nil: it would not. `EBADF` also if the number belongs
    /// to a run loop itself: the program's descriptor was closed before. (To ask adds the descriptor and takes it out
    /// again; the errno of that, if it stays in the set.)
    ///
    /// - Parameter set: The epoll set; negative if there is none.
    static func refusal(of descriptor: Int32, addedTo set: Int32) -> Int32? {
        let kind = rondo_descriptor_kind(descriptor)
        if kind == 0 { return nil }
        if kind < 0 { return errno }
        if contains(descriptor) { return EBADF }
        // An epoll set may be nested too deeply.
        guard set >= 0 else { return nil }
        var stays: Int32 = 0
        let code = rondo_epoll_refusal(set, descriptor, &stays)
        // libev would find it in the set and take it for watched, though for nothing: its owner would wait in vain.
        return stays != 0 || [EBADF, EINVAL, ELOOP].contains(code) ? code : nil
    }
}

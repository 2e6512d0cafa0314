internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The numbers of the descriptors that belong to run loops themselves: epoll sets, eventfds, timerfds.
///
/// A source that watches one of these numbers was scheduled for a descriptor that has been closed since.
/// Handing the number to libev would in some cases abort the process (an epoll set in itself, or sets that
/// watch each other); in others the program would read from an eventfd of the loop's (rule SRC-27).
enum OwnDescriptors {
    // `Int` like the keys of other tables: each further key type costs a program's start 0.1 ms, in which the
    // runtime searches all libraries for its `Hashable` conformance (W16).
    private static let numbers = Mutex<Set<Int>>([])

    /// Adds a descriptor. `contains` waits meanwhile, so that it never misses one that exists.
    ///
    /// - Parameter make: Makes the descriptor; returns nil if it could not.
    static func add(_ make: () -> Int32?) {
        numbers.withLock { numbers in
            if let number = make(), number >= 0 { numbers.insert(Int(number)) }
        }
    }

    /// To be called before the descriptor is closed.
    static func remove(_ number: Int32) { numbers.withLock { _ = $0.remove(Int(number)) } }

    static func contains(_ number: Int32) -> Bool { numbers.withLock { $0.contains(Int(number)) } }

    /// The errno with which the kernel would refuse to add `descriptor` to an epoll set, in the cases in
    /// which libev, as Debian builds it, aborts the process; nil if there is no such case. Also `EBADF` if
    /// the number belongs to a run loop itself: the program's descriptor has been closed. (The check adds the
    /// descriptor to the set and removes it again; if the removal fails, its errno is returned.)
    ///
    /// - Parameter set: The epoll set; negative if there is none.
    static func refusal(of descriptor: Int32, addedTo set: Int32) -> Int32? {
        let kind = rondo_descriptor_kind(descriptor)
        if kind == 0 { return nil }
        if kind < 0 { return errno }
        if contains(descriptor) { return EBADF }
        // The kernel also refuses epoll sets that are nested too deeply.
        guard set >= 0 else { return nil }
        var stays: Int32 = 0
        let code = rondo_epoll_refusal(set, descriptor, &stays)
        // A descriptor that stays in the set would be taken for watched by libev, though for no events: its
        // source would wait in vain.
        return stays != 0 || [EBADF, EINVAL, ELOOP].contains(code) ? code : nil
    }
}

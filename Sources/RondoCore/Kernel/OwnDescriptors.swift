internal import CEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The numbers of the descriptors that belong to run loops themselves: epoll sets, eventfds, timerfds.
///
/// A source that watches one of these numbers was scheduled for a descriptor that has been closed since. To hand the
/// number to libev would abort the process in places (an epoll set in itself, or sets that watch each other), and in
/// others a program would read from an eventfd that is the loop's (rule SRC-27).
enum OwnDescriptors {
    private static let numbers = Mutex<Set<Int32>>([])

    /// Adds a descriptor. `contains` waits meanwhile, so it never misses one that exists.
    ///
    /// - Parameter make: Makes the descriptor; nil: it could not.
    static func add(_ make: () -> Int32?) {
        numbers.withLock { numbers in
            if let number = make(), number >= 0 { numbers.insert(number) }
        }
    }

    /// To be called before the descriptor is closed.
    static func remove(_ number: Int32) { numbers.withLock { _ = $0.remove(number) } }

    static func contains(_ number: Int32) -> Bool { numbers.withLock { $0.contains(number) } }
}

internal import CEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The numbers of the descriptors that run loops have for themselves: epoll sets, eventfds, timerfds.
///
/// A source that watches one of these numbers was scheduled for a descriptor that has been closed since. To hand the
/// number to libev would abort the process in places (an epoll set in itself, or sets that watch each other), and in
/// others a program would read from an eventfd that is the loop's (rule SRC-27).
enum OwnDescriptors {
    private static let numbers = Mutex<Set<Int32>>([])

    /// - Parameter make: Makes a descriptor; nil: it could not. Between that and its being known no other thread can ask.
    static func add(_ make: () -> Int32?) {
        numbers.withLock { numbers in
            if let number = make(), number >= 0 { numbers.insert(number) }
        }
    }

    /// Before it is closed.
    static func remove(_ number: Int32) { numbers.withLock { _ = $0.remove(number) } }

    static func contains(_ number: Int32) -> Bool { numbers.withLock { $0.contains(number) } }
}

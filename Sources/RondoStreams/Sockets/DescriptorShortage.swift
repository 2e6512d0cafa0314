internal import RondoCore
internal import RondoMutex

/// Gives descriptors back that are kept only for speed, when the kernel has none left for a new connection.
package enum DescriptorShortage {
    private static let remedies = Mutex<[@Sendable () -> Void]>([])

    /// Calls `giveBack` whenever a connection finds no descriptor, for the rest of the process: on any
    /// thread. The lock of two streams, or the gate of a load, may be held: it must neither wait nor call the
    /// program.
    package static func onShortage(_ giveBack: @escaping @Sendable () -> Void) {
        remedies.withLock { $0.append(giveBack) }
    }

    /// Closes what is kept only for speed, and the connections that wait for their peers' end: those last,
    /// because what is closed before may wait in the same way.
    static func giveBack() {
        for remedy in remedies.withLock({ $0 }) { remedy() }
        LingeringClose.endAll()
    }

    /// Whether a call has failed with `code` because there is no room for another descriptor, or no memory
    /// for its file.
    static func isReason(_ code: Int32) -> Bool {
        switch code {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: true
        default: false
        }
    }
}

internal import RondoCore
internal import RondoMutex

/// Reports changes of the machine's interfaces, addresses and routes, as the kernel reports them by netlink
/// (rtnetlink(7)).
///
/// The socket is open while there are registrations. If no socket can be opened, nothing is reported.
final class NetworkChanges: Sendable {
    static let shared = NetworkChanges()

    /// A registration of a handler; releasing it ends the reports.
    final class Registration: Sendable {
        private let number: Int

        fileprivate init(_ number: Int) { self.number = number }

        deinit { NetworkChanges.shared.remove(number) }
    }

    private struct State {
        var lastNumber = 0
        var handlers: [Int: @Sendable () -> Void] = [:]
        var source: RunLoop.Source?
    }

    private let state = Mutex(State())

    /// - Parameter handler: Called on the loader's thread.
    func register(_ handler: @escaping @Sendable () -> Void) -> Registration {
        let number = state.withLock { state in
            state.lastNumber += 1
            state.handlers[state.lastNumber] = handler
            if state.source == nil { state.source = makeSource() }
            return state.lastNumber
        }
        return Registration(number)
    }

    private func remove(_ number: Int) {
        let (handler, source) = state.withLock { state in
            let handler = state.handlers.removeValue(forKey: number)
            return (handler, state.handlers.isEmpty ? state.source.take() : nil)
        }
        source?.invalidate()
        withExtendedLifetime(handler) {}
    }

    // MARK: - Netlink (linux/netlink.h, linux/rtnetlink.h)

    private static let family: UInt16 = 16
    /// Links, and addresses and routes of IPv4 and IPv6.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    /// `struct sockaddr_nl`.
    private struct Address {
        var family = NetworkChanges.family
        var padding: UInt16 = 0
        /// 0: the kernel chooses.
        var identifier: UInt32 = 0
        var groups = NetworkChanges.groups
    }

    /// Nil if no socket can be opened, or the loader's thread cannot be started.
    private func makeSource() -> RunLoop.Source? {
        guard let loader = try? RunLoop.startedLoader() else { return nil }
        let kind = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(Int32(Self.family), kind, 0)
        guard descriptor >= 0 else { return nil }
        var address = Address()
        let isBound = withUnsafePointer(to: &address) {
            // `bind` takes a `sockaddr`; the kernel recognizes the real type by the family.
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
            }
        }
        guard isBound else {
            _ = close(descriptor)
            return nil
        }
        // The descriptor is closed only when the source has left the loop: otherwise the loop might watch
        // another file that has got the same number.
        let source = RunLoop.Source(
            fileDescriptor: descriptor, interest: .read,
            cancel: { _, _ in _ = close(descriptor) }
        ) { [self] _, _ in
            drain(descriptor)
            for handler in state.withLock({ Array($0.handlers.values) }) { handler() }
        }
        loader.add(source, forMode: .default)
        return source
    }

    /// Discards the messages, because any change has the same effect.
    private func drain(_ descriptor: Int32) {
        var bytes = [UInt8](repeating: 0, count: 8192)
        // Bounded, since a machine may change faster than this reads; the next pass reads on.
        for _ in 0..<64 where recv(descriptor, &bytes, bytes.count, 0) <= 0 { return }
    }
}

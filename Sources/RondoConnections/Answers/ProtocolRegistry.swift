public import FoundationNetworking
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// The protocol classes that were registered. (Foundation's own list cannot be read on Linux.)
enum ProtocolRegistry {
    /// `@unchecked Sendable`: a class is the same on every thread.
    private struct Entry: @unchecked Sendable {
        let type: URLProtocol.Type
    }

    private static let entries = Mutex<[Entry]>([])
    /// Spares loads the lock where nothing was ever registered.
    private static let isUsed = Atomic(false)

    static func register(_ type: URLProtocol.Type) {
        let entry = Entry(type: type)
        entries.withLock { $0.append(entry) }
        isUsed.store(true, ordering: .releasing)
    }

    static func unregister(_ type: URLProtocol.Type) {
        let entry = Entry(type: type)
        entries.withLock { entries in
            guard let index = entries.lastIndex(where: { $0.type == entry.type }) else { return }
            entries.remove(at: index)
        }
    }

    /// The class that was registered last of those that accept `request` (rule UC-65).
    fileprivate static func accepting(_ request: URLRequest) -> URLProtocol.Type? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        // With the lock let go: `canInit` is the program's.
        return entries.withLock { $0 }.last { $0.type.canInit(with: request) }?.type
    }
}

/// The protocol classes that are asked about a load's requests: the load's own, in their order, and then those that were
/// registered, where they count.
///
/// `@unchecked Sendable`: a class is the same on every thread.
struct ProtocolClasses: @unchecked Sendable {
    private let own: [URLProtocol.Type]
    private let countsRegistered: Bool

    /// Those that were registered.
    static let registered = ProtocolClasses([], countsRegistered: true)

    /// - Parameter countsRegistered: Classes that were registered are asked as well.
    init(_ own: [URLProtocol.Type], countsRegistered: Bool) {
        self.own = own
        self.countsRegistered = countsRegistered
    }

    /// The first class that accepts `request`; nil: Rondo loads it itself.
    func accepting(_ request: URLRequest) -> URLProtocol.Type? {
        if !own.isEmpty, let type = own.first(where: { $0.canInit(with: request) }) { return type }
        return countsRegistered ? ProtocolRegistry.accepting(request) : nil
    }
}

// Shadows Foundation's methods of these names, which hold their list to themselves. A file that imports
// FoundationNetworking as well has to say `URLConnection.registerProtocol`.
extension URLProtocol {
    /// Has `protocolClass` asked for every request, before those that were registered earlier (rule UC-65);
    /// for Foundation's `URLSession` as well. Any thread.
    ///
    /// - Returns: False if it is no subclass of `URLProtocol`.
    @discardableResult
    public class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let type = protocolClass as? URLProtocol.Type else { return false }
        ProtocolRegistry.register(type)
        return FoundationProtocols.register(type)
    }

    /// Has it asked no longer. Any thread.
    public class func unregisterClass(_ protocolClass: AnyClass) {
        guard let type = protocolClass as? URLProtocol.Type else { return }
        ProtocolRegistry.unregister(type)
        FoundationProtocols.unregister(type)
    }
}

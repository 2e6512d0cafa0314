public import FoundationNetworking
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

internal import struct Synchronization.Atomic

/// The protocol classes that were registered. (Foundation's own list cannot be read on Linux.)
enum ProtocolRegistry {
    /// A registered class. `@unchecked Sendable`: a metatype is the same on every thread.
    private struct Entry: @unchecked Sendable {
        let type: URLProtocol.Type
    }

    private static let entries = Mutex<[Entry]>([])
    /// Lets loads skip the lock if no class was ever registered.
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

    /// The class that was registered last among those that accept `request` (rule UC-65).
    fileprivate static func accepting(_ request: URLRequest) -> URLProtocol.Type? {
        guard isUsed.load(ordering: .acquiring) else { return nil }
        // Outside the lock: `canInit` is code of the program.
        return entries.withLock { $0 }.last { $0.type.canInit(with: request) }?.type
    }
}

/// The protocol classes that are asked about a load's requests: the load's own, in their order, and then, if
/// `countsRegistered`, the registered ones.
///
/// `@unchecked Sendable`: a metatype is the same on every thread.
struct ProtocolClasses: @unchecked Sendable {
    private let own: [URLProtocol.Type]
    private let countsRegistered: Bool

    /// The registered classes only.
    static let registered = ProtocolClasses([], countsRegistered: true)

    /// - Parameter countsRegistered: Whether registered classes are asked as well.
    init(_ own: [URLProtocol.Type], countsRegistered: Bool) {
        self.own = own
        self.countsRegistered = countsRegistered
    }

    /// The first class that accepts `request`; nil if there is none, so that Rondo loads it itself.
    func accepting(_ request: URLRequest) -> URLProtocol.Type? {
        if !own.isEmpty, let type = own.first(where: { $0.canInit(with: request) }) { return type }
        return countsRegistered ? ProtocolRegistry.accepting(request) : nil
    }
}

// These methods shadow Foundation's of the same names, whose list of classes cannot be read. A file that also
// imports FoundationNetworking has to call `URLConnection.registerProtocol`.
extension URLProtocol {
    /// Registers `protocolClass`, which is then asked about every request, before the classes that were
    /// registered earlier (rule UC-65). It is registered with Foundation's `URLSession` as well. Any thread
    /// may call it.
    ///
    /// - Returns: False if it is not a subclass of `URLProtocol`.
    @discardableResult
    public class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let type = protocolClass as? URLProtocol.Type else { return false }
        ProtocolRegistry.register(type)
        return FoundationProtocols.register(type)
    }

    /// Unregisters `protocolClass`, which is then no longer asked. Any thread may call it.
    public class func unregisterClass(_ protocolClass: AnyClass) {
        guard let type = protocolClass as? URLProtocol.Type else { return }
        ProtocolRegistry.unregister(type)
        FoundationProtocols.unregister(type)
    }
}

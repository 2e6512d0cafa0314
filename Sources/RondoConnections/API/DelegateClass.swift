internal import RondoCore
internal import RondoMutex

/// What is known of a class of delegates: how to cast its objects, and which of its methods are defaults.
final class DelegateClass: Sendable {
    /// An object of the class may conform to `URLConnectionDownloadDelegate`.
    let isForDownloads: Bool
    let defaults = DelegateDefaults()

    /// It is a class, and not what a value with a delegate in it is.
    let isClass: Bool
    /// Of a class that conforms to `URLConnectionDataDelegate`.
    private let cast: Cast?

    private init(_ type: Any.Type) {
        isClass = type is AnyClass
        cast = (type as? any URLConnectionDataDelegate.Type).map { Self.cast(to: $0) }
        isForDownloads = type is any URLConnectionDownloadDelegate.Type
    }

    // MARK: Casts

    private typealias Cast = @Sendable (Any) -> any URLConnectionDataDelegate

    /// Casts objects of `Delegate` itself by what is known here at compile time.
    private static func cast<Delegate: URLConnectionDataDelegate>(to _: Delegate.Type) -> Cast {
        { object in
            func pass<Object>(_ object: Object) -> any URLConnectionDataDelegate {
                // Safe: `Object` is the class that `Delegate` is, so that both are one reference to it.
                withUnsafePointer(to: object) { UnsafeRawPointer($0).load(as: Delegate.self) }
            }
            return _openExistential(object, do: pass)
        }
    }

    /// `object`, which is of this class, if it conforms. To ask the runtime for each object takes longer than all
    /// else about making a connection.
    func dataDelegate(_ object: Any) -> (any URLConnectionDataDelegate)? { cast?(object) }

    // MARK: The classes of this process

    private struct Known: ~Copyable {
        var classes: [ObjectIdentifier: DelegateClass] = [:]
        /// The one that was asked for last is often the next one.
        var last: (type: ObjectIdentifier, found: DelegateClass)?
    }

    private static let known = Mutex(Known())
    /// A program has a few dozen.
    private static let maximumRemembered = 1024

    static func of(_ type: Any.Type) -> DelegateClass {
        let id = ObjectIdentifier(type)
        let (found, isNew) = known.withLock { known -> (DelegateClass, Bool) in
            if let last = known.last, last.type == id { return (last.found, false) }
            let old = known.classes[id]
            let found = old ?? DelegateClass(type)
            let remembers = old == nil && known.classes.count < maximumRemembered
            if remembers { known.classes[id] = found }
            known.last = (id, found)
            return (found, remembers)
        }
        if isNew, let type = type as? AnyClass, found.mayHaveUncalledMethods(type) {
            DelegateMethodCheck.connections.look(at: type)
        }
        return found
    }

    /// Whether `type`, which is this class, leaves the conformance to a class above it, or does not conform to what
    /// delegates of loads conform to.
    private func mayHaveUncalledMethods(_ type: AnyClass) -> Bool {
        guard cast != nil || isForDownloads else { return true }
        return _getSuperclass(type).map { $0 is any URLConnectionDelegate.Type } ?? false
    }
}

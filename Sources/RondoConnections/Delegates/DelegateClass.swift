internal import RondoCore

internal import struct Synchronization.Atomic

/// A class of delegates: how to cast its objects, and which of its methods are the defaults.
final class DelegateClass: Sendable {
    private let type: ObjectIdentifier
    /// Whether an object of the class may conform to `URLConnectionDownloadDelegate`.
    let isForDownloads: Bool
    let defaults = DelegateDefaults()

    /// False for a value type, such as an Optional that contains a delegate.
    let isClass: Bool
    /// Nil unless the class conforms to `URLConnectionDataDelegate`.
    private let cast: Cast?

    private init(_ type: Any.Type) {
        self.type = ObjectIdentifier(type)
        isClass = type is AnyClass
        cast = (type as? any URLConnectionDataDelegate.Type).map { Self.cast(to: $0) }
        isForDownloads = type is any URLConnectionDownloadDelegate.Type
    }

    // MARK: Casts

    private typealias Cast = @Sendable (Any) -> any URLConnectionDataDelegate

    /// Returns a function that casts objects of exactly the class `Delegate`, which is known at compile time.
    private static func cast<Delegate: URLConnectionDataDelegate>(to _: Delegate.Type) -> Cast {
        { object in
            func pass<Object>(_ object: Object) -> any URLConnectionDataDelegate {
                // Safe: `Object` and `Delegate` are the same class, so both are one reference to the object.
                withUnsafePointer(to: object) { UnsafeRawPointer($0).load(as: Delegate.self) }
            }
            return _openExistential(object, do: pass)
        }
    }

    /// `object`, which must be of this class, as a data delegate, if it conforms. Asking the runtime for each
    /// object takes longer than everything else about making a connection.
    func dataDelegate(_ object: Any) -> (any URLConnectionDataDelegate)? { cast?(object) }

    // MARK: The classes of this process

    /// The size of the table; a program has a few dozen classes of delegates.
    private static let maximumRemembered = 1024
    /// A class is looked up at the index that its address gives, and then at up to this many entries in a
    /// row.
    private static let maximumProbes = 16

    /// The addresses of the `DelegateClass` objects; 0 marks a free entry. No entry is ever removed, so a
    /// load finds its delegate's class without a lock. (`AtomicLazyReference`, which is made for this, makes
    /// bench-guard's http.request 1.6 % dearer; see `LoopThreadState.attach(_:)`.)
    private static let known = InlineArray<1024, Atomic<UInt>> { _ in Atomic(0) }

    /// - Returns: Nil if `address` is 0.
    private static func remembered(_ address: UInt) -> DelegateClass? {
        // Safe: the table owns a reference to each object in it, and never releases it.
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    static func of(_ type: Any.Type) -> DelegateClass {
        let id = ObjectIdentifier(type)
        // Type descriptions lie at multiples of eight; large ones are far apart.
        let start = UInt(bitPattern: id) >> 3
        for probe in 0..<UInt(maximumProbes) {
            let index = Int((start &+ start >> 10 &+ probe) % UInt(maximumRemembered))
            if let found = remembered(known[index].load(ordering: .acquiring)) {
                if found.type == id { return found }
                continue
            }
            let new = DelegateClass(type)
            // `Unmanaged`, since an atomic number keeps the new object: `known` retains it for the life of the
            // process, or it is released below. One of the five savings that are together worth 5 % of
            // bench-guard's http.request: see `LoopThreadState.attach(_:)`.
            let reference = Unmanaged.passRetained(new)
            let (isStored, other) = known[index].compareExchange(
                expected: 0, desired: UInt(bitPattern: reference.toOpaque()), ordering: .acquiringAndReleasing
            )
            if isStored {
                look(for: type, new)
                return new
            }
            reference.release()
            if let other = remembered(other), other.type == id { return other }
        }
        return DelegateClass(type)
    }

    /// Warns of methods of `type` that will not be called. Called when the class is seen for the first time.
    private static func look(for type: Any.Type, _ found: DelegateClass) {
        if let type = type as? AnyClass, found.mayHaveUncalledMethods(type) {
            DelegateMethodCheck.connections.look(at: type)
        }
    }

    /// Whether `type`, which is this class, inherits its conformance from a superclass, or does not conform
    /// to a delegate protocol of loads.
    private func mayHaveUncalledMethods(_ type: AnyClass) -> Bool {
        guard cast != nil || isForDownloads else { return true }
        // Most delegates are direct subclasses of NSObject; asking the runtime whether that conforms takes
        // 0.1 ms of W16.
        guard let superclass = _getSuperclass(type), superclass != NSObject.self else { return false }
        return superclass is any URLConnectionDelegate.Type
    }
}

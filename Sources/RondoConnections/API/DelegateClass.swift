internal import RondoCore

internal import struct Synchronization.Atomic

/// A class of delegates: how to cast its objects, and which of its methods are defaults.
final class DelegateClass: Sendable {
    private let type: ObjectIdentifier
    /// An object of the class may conform to `URLConnectionDownloadDelegate`.
    let isForDownloads: Bool
    let defaults = DelegateDefaults()
    /// The defaults of a load whose `DownloadSaver` calls a delegate of this class by `URLDownloadDelegate`.
    let downloadDefaults = DelegateDefaults()
    /// Objects of the class are `DownloadSaver`s, which have methods only to call their own delegates.
    let isDownloadSaver: Bool

    /// It is a class, and not what a value with a delegate in it is.
    let isClass: Bool
    /// Of a class that conforms to `URLConnectionDataDelegate`.
    private let cast: Cast?

    private init(_ type: Any.Type) {
        self.type = ObjectIdentifier(type)
        isClass = type is AnyClass
        cast = (type as? any URLConnectionDataDelegate.Type).map { Self.cast(to: $0) }
        isForDownloads = type is any URLConnectionDownloadDelegate.Type
        isDownloadSaver = type is DownloadSaver.Type
        if Self.quiet.contains(self.type) {
            defaults.insert(.willSendRequestForChallenge)
            defaults.insert(.canAuthenticate)
        }
    }

    /// Rondo's own delegates without a method that is asked about TLS: their first load takes an earlier session up as
    /// every later one does. Of the program's classes only a call tells (rule UC-74).
    private static let quiet: [ObjectIdentifier] = [
        ObjectIdentifier(AsyncLoad.self), ObjectIdentifier(ByteLoad.self),
        ObjectIdentifier(CacheRefresh.self),
        ObjectIdentifier(RequestCollector.self),
    ]

    // MARK: Casts

    private typealias Cast = @Sendable (Any) -> any URLConnectionDataDelegate

    /// Casts objects of `Delegate` itself by the type that is known at compile time.
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

    /// How many classes are remembered; a program has a few dozen.
    private static let maximumRemembered = 1024
    /// A class is looked for where its address says, and in as many entries behind.
    private static let maximumProbes = 16

    /// Their addresses; 0: no class. Nothing is ever taken out, so that a load finds its delegate's class without a lock.
    /// (`AtomicLazyReference`, which is made for this, takes 600 instructions to read.)
    private static let known = InlineArray<1024, Atomic<UInt>> { _ in Atomic(0) }

    /// - Returns: Nil: `address` is 0.
    private static func remembered(_ address: UInt) -> DelegateClass? {
        // Safe: the table owns a reference to what it holds, which it never gives up.
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    static func of(_ type: Any.Type) -> DelegateClass {
        let id = ObjectIdentifier(type)
        // What describes a type lies at multiples of eight; large ones are far apart.
        let start = UInt(bitPattern: id) >> 3
        for probe in 0..<UInt(maximumProbes) {
            let index = Int((start &+ start >> 10 &+ probe) % UInt(maximumRemembered))
            if let found = remembered(known[index].load(ordering: .acquiring)) {
                if found.type == id { return found }
                continue
            }
            let new = DelegateClass(type)
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

    /// Warns of methods of `type` that are not called, when the class is seen for the first time.
    private static func look(for type: Any.Type, _ found: DelegateClass) {
        if let type = type as? AnyClass, found.mayHaveUncalledMethods(type) {
            DelegateMethodCheck.connections.look(at: type)
        }
    }

    /// Whether `type`, which is this class, leaves the conformance to a class above it, or does not conform to what
    /// delegates of loads conform to.
    private func mayHaveUncalledMethods(_ type: AnyClass) -> Bool {
        guard cast != nil || isForDownloads else { return true }
        // Most classes of delegates stand below NSObject; to ask the runtime whether that conforms takes W16 0.1 ms.
        guard let superclass = _getSuperclass(type), superclass != NSObject.self else { return false }
        return superclass is any URLConnectionDelegate.Type
    }
}

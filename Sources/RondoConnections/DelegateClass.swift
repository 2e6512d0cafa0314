internal import RondoCore
internal import Synchronization

/// What is known of a class of delegates: which of its methods are defaults that change nothing.
///
/// Whether a class has a method of its own can only be told by calling it (rule UC-74), and stays as it is from
/// then on: so a default is called once, and what would be made for it is not made again.
final class DelegateClass: Sendable {
    enum Method: UInt8 {
        case shouldUseCredentialStorage = 1
        case willCacheResponse = 2
        case didCollectMetrics = 4
    }

    /// An object of the class may conform to `URLConnectionDownloadDelegate`.
    let isForDownloads: Bool
    private let defaults = Atomic<UInt8>(0)
    private let bodyStreamMethodIsKnown = Atomic(false)

    private init(_ type: Any.Type) {
        isForDownloads = type is any URLConnectionDownloadDelegate.Type
    }

    func hasDefault(of method: Method) -> Bool {
        defaults.load(ordering: .relaxed) & method.rawValue != 0
    }

    func noteDefault(of method: Method) {
        defaults.bitwiseOr(method.rawValue, ordering: .relaxed)
    }

    /// It was found to have `connection(_:needNewBodyStream:)`.
    var hasBodyStreamMethod: Bool { bodyStreamMethodIsKnown.load(ordering: .relaxed) }

    func noteBodyStreamMethod() { bodyStreamMethodIsKnown.store(true, ordering: .relaxed) }

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
        return known.withLock { known in
            if let last = known.last, last.type == id { return last.found }
            let found = known.classes[id] ?? DelegateClass(type)
            if known.classes.count < maximumRemembered { known.classes[id] = found }
            known.last = (id, found)
            return found
        }
    }
}

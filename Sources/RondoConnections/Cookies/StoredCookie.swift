internal import CDispatch
internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

internal import struct Synchronization.Atomic

/// A cookie that a load has received, as a program sees it in Foundation's storage.
///
/// Foundation asks it, on its own queue, whenever it writes its file: that is how a store hears of what the program does
/// there. It answers without a lock, since it is asked under Foundation's.
///
/// `@unchecked Sendable`, as its superclass is: nothing in it changes but `isLeftOut`, which is atomic.
final class StoredCookie: HTTPCookie, @unchecked Sendable {
    let cookie: Cookie
    /// Tells the store that Foundation's storage is at work.
    private let observer: StorageChangeObserver

    init?(_ cookie: Cookie, observer: StorageChangeObserver) {
        self.cookie = cookie
        self.observer = observer
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: cookie.name, .value: cookie.value, .path: cookie.path, .version: "0",
            .domain: (cookie.isHostOnly ? "" : ".") + cookie.domain,
        ]
        if let expires = cookie.expires {
            properties[.expires] = expires
        } else {
            properties[.discard] = "TRUE"
        }
        if cookie.isSecure { properties[.secure] = "TRUE" }
        if cookie.isHTTPOnly { properties[HTTPCookiePropertyKey(rawValue: "HttpOnly")] = "TRUE" }
        super.init(properties: properties)
    }

    /// `removeCookies(since:)` goes by the time at which it came, which may have been before this object was made.
    override var properties: [HTTPCookiePropertyKey: Any]? {
        observer.storageAsks()
        var properties = super.properties
        properties?[.created] = cookie.updatedAt.timeIntervalSinceReferenceDate
        return properties
    }

    override var domain: String {
        observer.storageAsks()
        return super.domain
    }

    /// To Foundation, while a store of very many cookies shows it one after the other: it would write all of them each
    /// time.
    override var isSessionOnly: Bool {
        observer.storageAsks()
        return super.isSessionOnly || observer.leavesOut
    }
}

extension HTTPCookiePropertyKey {
    /// A Double, counted from the reference date.
    static let created = HTTPCookiePropertyKey(rawValue: "Created")
}

/// Tells a store that the program has changed Foundation's storage. The storage asks the store's cookies for their
/// properties whenever it changes or writes anything; nothing else tells of a change.
final class StorageChangeObserver: Sendable {
    private let isNoticed = Atomic(false)
    /// The store itself is changing the storage.
    private let isStore = Atomic(false)
    private let isLeavingOut = Atomic(false)
    private let answer: @Sendable () -> Void

    /// - Parameter answer: Called on whatever thread changes the storage, under Foundation's lock.
    init(_ answer: @escaping @Sendable () -> Void) { self.answer = answer }

    /// Foundation's storage runs what it does on this queue, on the thread that called it.
    private static var isFoundationAsking: Bool {
        strcmp(dispatch_queue_get_label(nil), "org.swift.HTTPCookieStorage.syncQ") == 0
    }

    fileprivate func storageAsks() {
        guard !isStore.load(ordering: .acquiring), !isNoticed.load(ordering: .acquiring),
            Self.isFoundationAsking
        else { return }
        if !isNoticed.exchange(true, ordering: .acquiringAndReleasing) { answer() }
    }

    /// The store looks at the storage now: the next change is told of again.
    func rearm() { isNoticed.store(false, ordering: .sequentiallyConsistent) }

    fileprivate var leavesOut: Bool { isLeavingOut.load(ordering: .acquiring) && Self.isFoundationAsking }

    /// Calls `body`, by which the store itself changes the storage: that is not told of.
    ///
    /// - Parameter leavesOut: Foundation writes its file without the store's cookies.
    func withoutNotice(leavesOut: Bool, _ body: () -> Void) {
        isStore.store(true, ordering: .sequentiallyConsistent)
        isLeavingOut.store(leavesOut, ordering: .sequentiallyConsistent)
        defer {
            isLeavingOut.store(false, ordering: .sequentiallyConsistent)
            isStore.store(false, ordering: .sequentiallyConsistent)
        }
        body()
    }
}

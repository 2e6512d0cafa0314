internal import CDispatch
internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

internal import struct Synchronization.Atomic

/// A cookie that a load has received, as a program sees it in Foundation's storage.
///
/// Foundation reads its properties, on its own queue, whenever it writes its file: that tells a store that
/// the program has changed the storage. The properties are returned without a lock, since Foundation holds
/// its own meanwhile.
///
/// `@unchecked Sendable`, as its superclass is: nothing in it changes but `isLeftOut`, which is atomic.
final class StoredCookie: HTTPCookie, @unchecked Sendable {
    let cookie: Cookie
    /// Tells the store that Foundation's storage reads this cookie, because it is changing or writing.
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

    /// `removeCookies(since:)` uses the time at which the cookie came, which may be earlier than this
    /// object's creation.
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

    // The properties that Foundation reads when it writes its file: see `StorageChangeObserver.keepingFile`.

    override var isSessionOnly: Bool {
        observer.storageAsks()
        return switch observer.part(of: self) {
        case .none: super.isSessionOnly
        case .leftOut: true
        case .unwritable: false
        }
    }

    override var expiresDate: Date? {
        observer.part(of: self) == .unwritable ? .distantFuture : super.expiresDate
    }

    override var portList: [NSNumber]? {
        observer.part(of: self) == .unwritable ? Self.unwritableList : super.portList
    }

    /// A list that cannot be part of a property list, so that a dictionary with it is refused as a whole.
    ///
    /// `unsafeBitCast` is safe: both types are references to objects, and only the type of the element is
    /// read.
    private static let unwritableList = [unsafeBitCast(NSNull(), to: NSNumber.self)]
}

extension HTTPCookiePropertyKey {
    /// A Double, counted from the reference date.
    static let created = HTTPCookiePropertyKey(rawValue: "Created")
}

/// Tells a store that the program has changed Foundation's storage. The storage reads the properties of the
/// store's cookies whenever it changes or writes anything; there is no other notice of a change.
final class StorageChangeObserver: Sendable {
    private let isNoticed = Atomic(false)
    /// The thread on which the store itself is changing the storage; 0 for none. Foundation works on the
    /// thread of its caller.
    private let storeThread = Atomic<UInt>(0)
    /// The address of the cookie that keeps Foundation from writing its file; 0 if there is none.
    private let unwritable = Atomic<UInt>(0)
    private let answer: @Sendable () -> Void

    /// - Parameter answer: Called on whatever thread changes the storage, under Foundation's lock.
    init(_ answer: @escaping @Sendable () -> Void) { self.answer = answer }

    private static var thread: UInt { UInt(pthread_self()) }

    private var isStore: Bool { storeThread.load(ordering: .relaxed) == Self.thread }

    /// Foundation's storage does its work on this queue, on the calling thread.
    private static var isFoundationAsking: Bool {
        strcmp(dispatch_queue_get_label(nil), "org.swift.HTTPCookieStorage.syncQ") == 0
    }

    fileprivate func storageAsks() {
        guard !isNoticed.load(ordering: .acquiring), !isStore, Self.isFoundationAsking else { return }
        if !isNoticed.exchange(true, ordering: .acquiringAndReleasing) { answer() }
    }

    /// Whether there was a change that the store has not examined.
    var hasNoticed: Bool { isNoticed.load(ordering: .acquiring) }

    /// Call it before the store examines the storage: the next change is then reported again.
    ///
    /// - Returns: Whether there was a change since the last time.
    @discardableResult
    func rearm() -> Bool { isNoticed.exchange(false, ordering: .sequentiallyConsistent) }

    /// The role of a cookie while the store changes the storage and Foundation is not to write its file.
    fileprivate enum Part {
        case none
        /// The cookie is not written.
        case leftOut
        /// The cookie prevents the whole file from being written.
        case unwritable
    }

    fileprivate func part(of cookie: StoredCookie) -> Part {
        let unwritable = unwritable.load(ordering: .relaxed)
        guard unwritable != 0, isStore else { return .none }
        return unwritable == Self.number(cookie) ? .unwritable : .leftOut
    }

    private static func number(_ cookie: StoredCookie) -> UInt {
        UInt(bitPattern: ObjectIdentifier(cookie))
    }

    /// Calls `body`, in which the store itself changes the storage; these changes are not reported.
    ///
    /// Foundation writes a file of all cookies with each change, 30 to 50 µs for each cookie and 3 ms or more
    /// for the disk, and that cannot be switched off. So one of the store's cookies in the storage claims
    /// that it cannot be written, and the others that they are session cookies; then Foundation skips the
    /// file.
    ///
    /// - Parameter cookie: A cookie that is in the storage when Foundation would write its file; nil if it is
    ///   to be written.
    func keepingFile(by cookie: StoredCookie?, _ body: () -> Void) {
        unwritable.store(cookie.map(Self.number) ?? 0, ordering: .relaxed)
        storeThread.store(Self.thread, ordering: .relaxed)
        defer {
            storeThread.store(0, ordering: .relaxed)
            unwritable.store(0, ordering: .relaxed)
        }
        body()
    }
}

internal import FoundationNetworking
internal import RondoCore

/// The storage in which a program sees cookies and changes them: Foundation's, or that of a test.
///
/// All but `cookies` and `policy` may take long: Foundation writes and synchronizes a file each time, unless
/// `StorageChangeObserver` keeps it from that.
protocol VisibleCookies: Sendable {
    /// In the same order as the last time, unless something has changed.
    var cookies: [HTTPCookie] { get }
    var policy: HTTPCookie.AcceptPolicy { get }
    func set(_ cookie: HTTPCookie)
    func delete(_ cookie: HTTPCookie)
    /// Makes the storage write its file, without a change.
    func write()
}

/// Foundation's storage, in which a program sees and changes cookies. A released storage counts as empty.
///
/// `@unchecked Sendable`: the reference is set once, and the storage has a queue of its own.
final class FoundationCookies: VisibleCookies, @unchecked Sendable {
    /// The shared storage, created in a folder that only the user can read; see `CookieFolder`. It reads its
    /// file when it is created, in 27 µs a cookie: so the store's thread creates it, unless the program uses
    /// it first.
    static let sharedStorage: HTTPCookieStorage = {
        CookieFolder.prepare()
        return .shared
    }()

    private weak let own: HTTPCookieStorage?
    private let isShared: Bool

    init(_ storage: HTTPCookieStorage) { (own, isShared) = (storage, false) }

    /// The shared storage, which reads its file when it is first asked for anything.
    init() { (own, isShared) = (nil, true) }

    private var storage: HTTPCookieStorage? { isShared ? Self.sharedStorage : own }

    var isGone: Bool { !isShared && own == nil }
    var cookies: [HTTPCookie] { storage?.cookies ?? [] }
    var policy: HTTPCookie.AcceptPolicy { storage?.cookieAcceptPolicy ?? .never }
    func set(_ cookie: HTTPCookie) { storage?.setCookie(cookie) }
    func delete(_ cookie: HTTPCookie) { storage?.deleteCookie(cookie) }

    func write() {
        // Foundation writes after each deletion, even of a cookie that is not there. No program can have set
        // this one: it has no name.
        if let nothing = HTTPCookie(properties: [.name: "", .value: "", .path: "", .domain: ""]) {
            storage?.deleteCookie(nothing)
        }
    }
}

internal import FoundationNetworking
internal import RondoCore

/// Where a program sees cookies, and changes them: Foundation's storage, or a test's own.
///
/// All but `cookies` and `policy` may take long: Foundation writes and synchronizes a file each time.
protocol VisibleCookies: Sendable {
    /// In the same order as the last time, unless something has changed.
    var cookies: [HTTPCookie] { get }
    var policy: HTTPCookie.AcceptPolicy { get }
    func set(_ cookie: HTTPCookie)
    func delete(_ cookie: HTTPCookie)
    /// Has what is kept of them written, without a change.
    func write()
}

/// Foundation's. A store of one that has gone holds nothing.
///
/// `@unchecked Sendable`: the reference is set once, and the storage has a queue of its own.
final class FoundationCookies: VisibleCookies, @unchecked Sendable {
    private weak let own: HTTPCookieStorage?
    private let isShared: Bool

    init(_ storage: HTTPCookieStorage) { (own, isShared) = (storage, false) }

    /// The shared storage, which reads its file when it is first asked for anything.
    init() { (own, isShared) = (nil, true) }

    private var storage: HTTPCookieStorage? { isShared ? CookieStores.sharedStorage : own }

    var isGone: Bool { !isShared && own == nil }
    var cookies: [HTTPCookie] { storage?.cookies ?? [] }
    var policy: HTTPCookie.AcceptPolicy { storage?.cookieAcceptPolicy ?? .never }
    func set(_ cookie: HTTPCookie) { storage?.setCookie(cookie) }
    func delete(_ cookie: HTTPCookie) { storage?.deleteCookie(cookie) }

    func write() {
        // It writes after each deletion, of one that is not there too. Nobody can set this one: it has no name.
        if let nothing = HTTPCookie(properties: [.name: "", .value: "", .path: "", .domain: ""]) {
            storage?.deleteCookie(nothing)
        }
    }
}

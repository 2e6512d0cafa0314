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
}

/// Foundation's. A store of one that has gone holds nothing.
///
/// `@unchecked Sendable`: the reference is set once, and the storage has a queue of its own.
final class FoundationCookies: VisibleCookies, @unchecked Sendable {
    private weak let storage: HTTPCookieStorage?

    init(_ storage: HTTPCookieStorage) { self.storage = storage }

    var isGone: Bool { storage == nil }
    var cookies: [HTTPCookie] { storage?.cookies ?? [] }
    var policy: HTTPCookie.AcceptPolicy { storage?.cookieAcceptPolicy ?? .never }
    func set(_ cookie: HTTPCookie) { storage?.setCookie(cookie) }
    func delete(_ cookie: HTTPCookie) { storage?.deleteCookie(cookie) }
}

internal import FoundationNetworking

/// Where a program sees cookies, and changes them: Foundation's storage, or a test's own.
///
/// All but `cookies` and `policy` may take long: Foundation writes and synchronizes a file each time, unless
/// `StorageChangeObserver` keeps it from that.
protocol VisibleCookies: Sendable {
    /// In the same order as the last time, unless something has changed.
    var cookies: [HTTPCookie] { get }
    var policy: HTTPCookie.AcceptPolicy { get }
    func set(_ cookie: HTTPCookie)
    func delete(_ cookie: HTTPCookie)
    /// Has the storage written to its file, without a change.
    func write()
}

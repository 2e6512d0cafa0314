internal import FoundationNetworking

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

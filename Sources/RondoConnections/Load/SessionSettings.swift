package import FoundationNetworking
package import RondoCore

/// What a session sets apart for its loads, beside what a connection's configuration has.
package struct SessionSettings: Sendable {
    /// All that is not said here.
    package var connection = URLConnection.Configuration()
    /// Whose connections the loads use.
    package var pool = ConnectionPool.shared
    /// In place of the configuration's: where cookies are kept; nil within: none are sent or kept.
    package var cookieStorage: HTTPCookieStorage??
    /// Cookies of the storage are sent.
    package var sendsCookies = true
    /// Which cookies are kept, whatever the storage says.
    package var cookiePolicy: HTTPCookie.AcceptPolicy?
    /// Where credentials are looked for and kept; nil: nowhere.
    package var credentialStorage: URLCredentialStorage?
    /// In place of the configuration's: where responses are kept; nil within: nowhere.
    package var cache: URLCache??
    /// Asked in this order before Rondo loads a request itself.
    package var protocolClasses: [AnyClass] = []
    /// Classes that were registered by `URLProtocol.registerClass(_:)` are asked as well.
    package var countsRegisteredClasses = false

    /// Seconds in all; nil: as long as it takes.
    package var totalTimeout: TimeInterval?
    /// A load waits for a network where there is none, instead of failing.
    package var waitsForConnectivity = false

    package init() {}

    package var loadSettings: LoadSettings {
        var values = connection.loadValues
        values.pool = pool
        values.totalTimeout = totalTimeout ?? values.totalTimeout
        values.waitsForConnectivity = waitsForConnectivity
        if let cookieStorage { values.cookieStore = cookieStorage.map(CookieStores.store) }
        values.sendsCookies = sendsCookies
        values.cookiePolicy = cookiePolicy
        values.credentials = credentialStorage.map {
            $0 === URLCredentialStorage.shared ? .shared : StoredCredentials($0)
        }
        if let cache { values.store = { cache?.responseStore } }
        values.protocols = ProtocolClasses(
            protocolClasses.compactMap { $0 as? URLProtocol.Type }, countsRegistered: countsRegisteredClasses)
        return LoadSettings(values)
    }
}

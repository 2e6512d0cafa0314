package import FoundationNetworking
package import RondoCore

/// The settings of a session for its loads: a connection's configuration, and settings that only sessions
/// have.
package struct SessionSettings: Sendable {
    /// The settings that the other properties do not override.
    package var connection = URLConnection.Configuration()
    /// The pool whose connections the loads use.
    package var pool = ConnectionPool.shared
    /// Overrides the configuration's storage for cookies; if the inner value is nil, none are sent or kept.
    package var cookieStorage: HTTPCookieStorage??
    /// Whether cookies of the storage are sent.
    package var sendsCookies = true
    /// Which cookies are kept, whatever the storage says.
    package var cookiePolicy: HTTPCookie.AcceptPolicy?
    /// The storage for credentials; nil for none.
    package var credentialStorage: URLCredentialStorage?
    /// Overrides the configuration's cache; if the inner value is nil, no responses are kept.
    package var cache: URLCache??
    /// Where Strict-Transport-Security of responses is stored; nil to store it for all loads.
    package var hstsHosts: OwnHSTSHosts?
    /// Asked in this order before Rondo loads a request itself.
    package var protocolClasses: [AnyClass] = []
    /// Whether classes that were registered by `URLProtocol.registerClass(_:)` are asked as well.
    package var countsRegisteredClasses = false

    /// The maximum time of a load in seconds; nil for no limit.
    package var totalTimeout: TimeInterval?
    /// Whether a load waits for a network if there is none, instead of failing.
    package var waitsForConnectivity = false

    package init() {}

    package var loadSettings: LoadSettings {
        var values = connection.loadValues
        values.pool = pool
        values.totalTimeout = totalTimeout ?? values.totalTimeout
        values.waitsForConnectivity = waitsForConnectivity
        values.hstsHosts = hstsHosts
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

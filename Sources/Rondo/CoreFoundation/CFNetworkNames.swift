// CFNetwork's names: thin, no logic.

// MARK: - Proxies, the keys of `URLSessionConfiguration.connectionProxyDictionary`

/// A number; the proxy is used if it is not 0.
public var kCFNetworkProxiesHTTPEnable: CFString { "HTTPEnable" }
/// The name of the host.
public var kCFNetworkProxiesHTTPProxy: CFString { "HTTPProxy" }
/// A number.
public var kCFNetworkProxiesHTTPPort: CFString { "HTTPPort" }
/// A number; the proxy is used if it is not 0.
public var kCFNetworkProxiesHTTPSEnable: CFString { "HTTPSEnable" }
/// The name of the host.
public var kCFNetworkProxiesHTTPSProxy: CFString { "HTTPSProxy" }
/// A number.
public var kCFNetworkProxiesHTTPSPort: CFString { "HTTPSPort" }
/// A number; the proxy is used if it is not 0.
public var kCFNetworkProxiesSOCKSEnable: CFString { "SOCKSEnable" }
/// The name of the host.
public var kCFNetworkProxiesSOCKSProxy: CFString { "SOCKSProxy" }
/// A number.
public var kCFNetworkProxiesSOCKSPort: CFString { "SOCKSPort" }
/// An array of patterns of hosts that are reached without a proxy: `*.example.com`, `169.254/16`.
public var kCFNetworkProxiesExceptionsList: CFString { "ExceptionsList" }
/// A number; if it is not 0, hosts whose names have no dot are reached without a proxy.
public var kCFNetworkProxiesExcludeSimpleHostnames: CFString { "ExcludeSimpleHostnames" }
/// A String; no user by default.
public var kCFProxyUsernameKey: CFString { "kCFProxyUsernameKey" }
/// A String.
public var kCFProxyPasswordKey: CFString { "kCFProxyPasswordKey" }
/// The name that streams have for `kCFNetworkProxiesHTTPProxy`.
public var kCFStreamPropertyHTTPProxyHost: CFString { "HTTPProxy" }
/// The name that streams have for `kCFNetworkProxiesHTTPPort`.
public var kCFStreamPropertyHTTPProxyPort: CFString { "HTTPPort" }
/// The name that streams have for `kCFNetworkProxiesHTTPSProxy`.
public var kCFStreamPropertyHTTPSProxyHost: CFString { "HTTPSProxy" }
/// The name that streams have for `kCFNetworkProxiesHTTPSPort`.
public var kCFStreamPropertyHTTPSProxyPort: CFString { "HTTPSPort" }

// MARK: - Errors

/// The domain of the error of a name that was not found, and of a proxy; often the cause of another error.
public var kCFErrorDomainCFNetwork: CFString { "kCFErrorDomainCFNetwork" }

// MARK: - Kinds of traffic. Streams here do not distinguish them: setting one returns false

/// `Stream.PropertyKey.networkServiceType`.
public var kCFStreamNetworkServiceType: CFString {
    Stream.PropertyKey.networkServiceType.rawValue as NSString
}
public var kCFStreamNetworkServiceTypeVoIP: CFString {
    StreamNetworkServiceTypeValue.voIP.rawValue as NSString
}
public var kCFStreamNetworkServiceTypeVideo: CFString {
    StreamNetworkServiceTypeValue.video.rawValue as NSString
}
public var kCFStreamNetworkServiceTypeBackground: CFString {
    StreamNetworkServiceTypeValue.background.rawValue as NSString
}
public var kCFStreamNetworkServiceTypeVoice: CFString {
    StreamNetworkServiceTypeValue.voice.rawValue as NSString
}

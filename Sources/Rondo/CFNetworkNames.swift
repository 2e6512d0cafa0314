// CFNetwork's names: thin, no logic.

// MARK: - Proxies, the keys of `URLSessionConfiguration.connectionProxyDictionary`

/// A number; not 0: it is used.
public var kCFNetworkProxiesHTTPEnable: CFString { "HTTPEnable" }
/// The name of the host.
public var kCFNetworkProxiesHTTPProxy: CFString { "HTTPProxy" }
/// A number.
public var kCFNetworkProxiesHTTPPort: CFString { "HTTPPort" }
/// A number; not 0: it is used.
public var kCFNetworkProxiesHTTPSEnable: CFString { "HTTPSEnable" }
/// The name of the host.
public var kCFNetworkProxiesHTTPSProxy: CFString { "HTTPSProxy" }
/// A number.
public var kCFNetworkProxiesHTTPSPort: CFString { "HTTPSPort" }
/// A number; not 0: it is used.
public var kCFNetworkProxiesSOCKSEnable: CFString { "SOCKSEnable" }
/// The name of the host.
public var kCFNetworkProxiesSOCKSProxy: CFString { "SOCKSProxy" }
/// A number.
public var kCFNetworkProxiesSOCKSPort: CFString { "SOCKSPort" }
/// `kCFNetworkProxiesHTTPProxy`, by the name that streams have for it.
public var kCFStreamPropertyHTTPProxyHost: CFString { "HTTPProxy" }
/// `kCFNetworkProxiesHTTPPort`, by the name that streams have for it.
public var kCFStreamPropertyHTTPProxyPort: CFString { "HTTPPort" }
/// `kCFNetworkProxiesHTTPSProxy`, by the name that streams have for it.
public var kCFStreamPropertyHTTPSProxyHost: CFString { "HTTPSProxy" }
/// `kCFNetworkProxiesHTTPSPort`, by the name that streams have for it.
public var kCFStreamPropertyHTTPSProxyPort: CFString { "HTTPSPort" }

// MARK: - Kinds of traffic, which streams here do not tell apart: setting one gives false

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

internal import RondoCore

// The settings as properties of a stream.
extension SocketSettings.Value {
    /// The change that a client requests by setting a property.
    enum Change {
        case tls(TLSSettings?)
        case options(SocketOptions)
        case closesDescriptor(Bool)
        case proxy(StreamProxy?)
    }

    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? {
        switch key {
        case .socketOptionsKey: options as AnyObject
        case .tlsSettingsKey: tls.map { $0 as AnyObject }
        case .socketSecurityLevelKey: (tls?.level ?? .none).rawValue as NSString
        case .proxyKey: proxy.map { $0 as AnyObject }
        case .socksProxyConfigurationKey: proxy?.socksDictionary
        case .proxyResponseKey: proxyResponse.isEmpty ? nil : Data(proxyResponse) as NSData
        default: nil
        }
    }

    /// - Returns: Nil if there is no such property, or the value is not valid for it.
    func change(by property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Change? {
        switch key {
        case .tlsSettingsKey:
            guard property == nil || property is TLSSettings else { return nil }
            return .tls(property as? TLSSettings)
        case .socketSecurityLevelKey:
            return TLSSettings.level(property, basedOn: tls).map { .tls($0) }
        case .sslSettingsKey:
            guard let values = property as? [String: Any] else { return nil }
            return TLSSettings.dictionary(values, basedOn: tls).map { .tls($0) }
        case .socketOptionsKey: return (property as? SocketOptions).map { .options($0) }
        case .shouldCloseNativeSocketKey:
            return (property as? NSNumber).map { .closesDescriptor($0.boolValue) }
        case .proxyKey:
            guard property == nil || property is StreamProxy else { return nil }
            return .proxy(property as? StreamProxy)
        case .socksProxyConfigurationKey:
            guard let property else { return .proxy(nil) }
            return StreamProxy(socksDictionary: property).map { .proxy($0) }
        default: return nil
        }
    }
}

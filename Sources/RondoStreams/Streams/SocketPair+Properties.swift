internal import RondoCore

// What can be asked and set on either stream, and holds for both (rules ST-33 and ST-39).
extension SocketPair {
    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? {
        lock.withLock { _ in
            switch key {
            case .socketRemoteHostNameKey: remoteHost as NSString
            case .socketRemotePortNumberKey: remotePort as NSNumber
            case .socketNativeHandleKey: nativeHandle
            case .shouldCloseNativeSocketKey: closesDescriptor as NSNumber
            case .socketOptionsKey: settings.value.options as AnyObject
            case .tlsSettingsKey: settings.value.tls.map { $0 as AnyObject }
            case .tlsInformationKey: channel?.tlsInformation.map { $0 as AnyObject }
            case .socketSecurityLevelKey: (settings.value.tls?.level ?? .none).rawValue as NSString
            case .proxyKey: settings.value.proxy.map { $0 as AnyObject }
            case .socksProxyConfigurationKey: settings.value.proxy?.socksDictionary
            case .proxyResponseKey:
                settings.value.proxyResponse.isEmpty ? nil : Data(settings.value.proxyResponse) as NSData
            default: nil
            }
        }
    }

    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool {
        // What it replaces may be the program's, and is released without the lock.
        var old: SocketSettings?
        defer { withExtendedLifetime(old) {} }
        return lock.withLock { _ in
            old = settings
            guard !isOver else { return false }
            switch key {
            case .tlsSettingsKey:
                guard property == nil || property is TLSSettings else { return false }
                return secure(property as? TLSSettings)
            case .socketSecurityLevelKey:
                guard let tls = TLSSettings.level(property, basedOn: settings.value.tls) else { return false }
                return secure(tls)
            case .sslSettingsKey:
                guard let values = property as? [String: Any],
                    let tls = TLSSettings.dictionary(values, basedOn: settings.value.tls)
                else { return false }
                return secure(tls)
            case .socketOptionsKey: return setOptions(property)
            case .shouldCloseNativeSocketKey: return setClosesDescriptor(property)
            case .proxyKey:
                guard property == nil || property is StreamProxy else { return false }
                return setProxy(property as? StreamProxy)
            case .socksProxyConfigurationKey:
                guard let property else { return setProxy(nil) }
                guard let proxy = StreamProxy(socksDictionary: property) else { return false }
                return setProxy(proxy)
            default: return false
            }
        }
    }

    // MARK: - The socket

    var remoteHost: String {
        switch target {
        case .host(let host, _): host
        case .address(let address): address.host
        case .descriptor, .socket: remoteAddress?.host ?? ""
        }
    }

    var peerName: String? {
        switch target {
        case .host(let name, let port): "\(name):\(port)"
        case .address(let address): address.description
        case .descriptor, .socket: lock.withLock { _ in remoteAddress?.description }
        }
    }

    var remotePort: Int {
        switch target {
        case .host(_, let port): port
        case .address: 0
        case .descriptor, .socket: Int(remoteAddress?.port ?? 0)
        }
    }

    private var remoteAddress: SocketAddress? {
        if let address = channel?.remoteAddress { return address }
        switch target {
        case .descriptor(let descriptor): return isOver ? nil : Socket.peerAddress(of: descriptor)
        case .socket(let socket): return socket.peerAddress
        case .host, .address: return nil
        }
    }

    /// The descriptor as Apple has it: its number's bytes in an NSData.
    private var nativeHandle: NSData? {
        let descriptor: Int32? =
            switch target {
            case .descriptor(let descriptor): isOver ? nil : descriptor
            case .socket(let socket): channel?.descriptor ?? socket.descriptor
            case .host, .address: channel?.descriptor
            }
        guard var descriptor, descriptor >= 0 else { return nil }
        return NSData(bytes: &descriptor, length: MemoryLayout<Int32>.size)
    }

    /// Rule ST-40.
    var closesDescriptor: Bool {
        if let set = settings.value.closesDescriptor { return set }
        if case .descriptor = target { return false }
        return true
    }

    private func setClosesDescriptor(_ property: AnyObject?) -> Bool {
        guard let closes = (property as? NSNumber)?.boolValue else { return false }
        settings = settings.changed { $0.closesDescriptor = closes }
        channel?.closesDescriptor = closes
        return true
    }

    private func setOptions(_ property: AnyObject?) -> Bool {
        guard let options = property as? SocketOptions else { return false }
        guard channel == nil || options.connectTimeout == settings.value.options.connectTimeout else {
            return false
        }
        settings = settings.changed { $0.options = options }
        applyOptions()
        return true
    }

    /// The kernel has what a new socket is given anyway.
    func applyOptions() {
        guard let descriptor = channel?.descriptor, settings !== SocketSettings.standard else { return }
        Socket.apply(settings.value.options, to: descriptor)
    }

    // MARK: - TLS and proxies

    /// From the start, or, when the connection stands already, from here on (rule ST-42).
    private func secure(_ tls: TLSSettings?) -> Bool {
        if let channel {
            let wasOpen = channel.isOpen
            if tls != nil { channel.configuration.handshakes = settings.value.handshakes }
            guard channel.secure(tls, received: ahead?.bytes ?? []) else { return false }
            if wasOpen, tls != nil {
                // What was read ahead is TLS's; there is neither bytes nor space until that stands.
                ahead = nil
                channel.wantsRead = inputEnding == nil && opened.contains(.input)
                input.update { $0.setReady(false) }
                output.update { $0.setReady(false) }
            }
        }
        settings = settings.changed { $0.tls = tls }
        return true
    }

    /// Of a connection that is over nobody is asked any more. A handler may hold on to the streams.
    func forgetHandlers() {
        guard settings.value.tls?.trustHandler != nil || settings.value.tls?.identityHandler != nil else {
            return
        }
        settings = settings.changed {
            $0.tls?.trustHandler = nil
            $0.tls?.identityHandler = nil
        }
    }

    /// Only where there is a way to choose, and before it is taken.
    private func setProxy(_ proxy: StreamProxy?) -> Bool {
        guard channel == nil, case .host = target else { return false }
        settings = settings.changed { $0.proxy = proxy }
        return true
    }
}

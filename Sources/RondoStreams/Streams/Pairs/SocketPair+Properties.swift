internal import RondoCore

// The properties that can be read and set on either stream and hold for both (rules ST-33 and ST-39).
extension SocketPair {
    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? {
        lock.withLock { _ in
            switch key {
            case .socketRemoteHostNameKey: remoteHost as NSString
            case .socketRemotePortNumberKey: remotePort as NSNumber
            case .socketNativeHandleKey: nativeHandle
            case .shouldCloseNativeSocketKey: closesDescriptor as NSNumber
            case .tlsInformationKey:
                (channel?.tlsInformation ?? settings.value.tlsInformation).map { $0 as AnyObject }
            default: settings.value.property(forKey: key)
            }
        }
    }

    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool {
        // The replaced settings may hold objects of the program, and are released without the lock.
        var old: SocketSettings?
        defer { withExtendedLifetime(old) {} }
        return lock.withLock { _ in
            old = settings
            guard !isOver, let change = settings.value.change(by: property, forKey: key) else { return false }
            switch change {
            case .tls(let tls): return secure(tls)
            case .options(let options): return setOptions(options)
            case .closesDescriptor(let closes): setClosesDescriptor(closes)
            case .proxy(let proxy): return setProxy(proxy)
            }
            return true
        }
    }

    // MARK: - The socket

    var remoteHost: String { target.host(at: remoteAddress) }

    var remotePort: Int { target.port(at: remoteAddress) }

    var peerName: String? {
        switch target {
        case .host(let name, let port): "\(name):\(port)"
        case .address(let address): address.description
        case .channel(let channel): "\(channel.configuration.host):\(channel.configuration.port)"
        case .descriptor, .socket: lock.withLock { _ in remoteAddress?.description }
        }
    }

    private var remoteAddress: SocketAddress? {
        // After the close, the number of a client's descriptor may be another file's.
        channel?.remoteAddress ?? (isOver && target.isClients ? nil : target.peerAddress)
    }

    /// The descriptor in Apple's form: the bytes of its number in an NSData.
    private var nativeHandle: NSData? {
        let own = isOver && target.isClients ? nil : target.descriptor
        let found = target.isClients ? own : channel?.descriptor ?? own
        guard var descriptor = found, descriptor >= 0 else { return nil }
        return NSData(bytes: &descriptor, length: MemoryLayout<Int32>.size)
    }

    /// Whether closing the streams closes the socket (rule ST-40).
    var closesDescriptor: Bool { settings.value.closesDescriptor ?? !target.isClients }

    private func setClosesDescriptor(_ closes: Bool) {
        settings = settings.changed { $0.closesDescriptor = closes }
        channel?.closesDescriptor = closes
    }

    private func setOptions(_ options: SocketOptions) -> Bool {
        guard channel == nil || options.connectTimeout == settings.value.options.connectTimeout else {
            return false
        }
        settings = settings.changed { ($0.options, $0.needsOptions) = (options, true) }
        applyOptions()
        return true
    }

    /// Applies the options to the socket, if it does not have them.
    func applyOptions() {
        guard let descriptor = channel?.descriptor, settings.value.needsOptions else { return }
        Socket.apply(settings.value.options, to: descriptor)
    }

    // MARK: - TLS and proxies

    /// Secures the connection from the start or, if it is open already, from here on (rule ST-42).
    private func secure(_ tls: TLSSettings?) -> Bool {
        if let channel {
            guard secure(channel, by: tls) else { return false }
        } else if case .channel(let given) = target, given.isSecuredToHost {
            return false
        }
        settings = settings.changed { $0.tls = tls }
        return true
    }

    /// - Returns: False if the channel is secured already, or closed, or TLS has begun, or if the peer was
    ///   told that nothing more comes from here: a handshake could not be sent.
    func secure(_ channel: SocketChannel, by tls: TLSSettings?) -> Bool {
        let wasOpen = channel.isOpen
        if wasOpen, tls != nil, writer.hasEnded { return false }
        if tls != nil { channel.joinHandshakes(settings.value.handshakes) }
        guard channel.secure(tls, received: reader.bytesAhead) else { return false }
        if wasOpen, tls != nil {
            // The bytes read ahead belong to TLS. There are neither bytes nor space until the handshake is
            // done; the first afterwards are new to the client, whatever it has made of an event before.
            reader.dropAhead()
            channel.wantsRead = reader.wantsBytes
            input.update { $0.used(isReady: false) }
            output.update { $0.used(isReady: false) }
        }
        return true
    }

    /// Sets the proxy; only for a host, and before the connection is started.
    private func setProxy(_ proxy: StreamProxy?) -> Bool {
        guard channel == nil, case .host = target else { return false }
        settings = settings.changed { $0.proxy = proxy }
        return true
    }
}

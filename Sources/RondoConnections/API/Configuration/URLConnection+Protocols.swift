public import FoundationNetworking

extension URLConnection {
    /// Registers `type`, which is then asked about every request, before the classes that were registered
    /// earlier (rule UC-65). Any thread may call it.
    public static func registerProtocol(_ type: URLProtocol.Type) { ProtocolRegistry.register(type) }

    /// Unregisters `type`, which is then no longer asked. Any thread may call it.
    public static func unregisterProtocol(_ type: URLProtocol.Type) { ProtocolRegistry.unregister(type) }
}

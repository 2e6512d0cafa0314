public import FoundationNetworking

extension URLConnection {
    /// Has `type` asked for every request, before those that were registered earlier (rule UC-65). Any
    /// thread.
    public static func registerProtocol(_ type: URLProtocol.Type) { ProtocolRegistry.register(type) }

    /// Has it asked no longer. Any thread.
    public static func unregisterProtocol(_ type: URLProtocol.Type) { ProtocolRegistry.unregister(type) }
}

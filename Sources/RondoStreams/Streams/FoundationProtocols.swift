package import FoundationNetworking
internal import RondoCore

/// Foundation's own registration of protocol classes, for the layer above, whose methods have the same names.
package enum FoundationProtocols {
    package static func register(_ type: URLProtocol.Type) -> Bool { URLProtocol.registerClass(type) }
    package static func unregister(_ type: URLProtocol.Type) { URLProtocol.unregisterClass(type) }
}

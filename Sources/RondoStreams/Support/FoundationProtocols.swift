package import FoundationNetworking
internal import RondoCore

/// Registers protocol classes with Foundation. For the module above, whose own methods have the same names.
package enum FoundationProtocols {
    package static func register(_ type: URLProtocol.Type) -> Bool { URLProtocol.registerClass(type) }
    package static func unregister(_ type: URLProtocol.Type) { URLProtocol.unregisterClass(type) }
}

internal import RondoCore

/// A port of 127.0.0.1 that refuses connections: taken by a socket that does not listen.
package final class RefusedPort: Sendable {
    package let port: UInt16
    private let descriptor: Int32

    package init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 ? getsockname(descriptor, $0, &size) : -1
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        guard status == 0 else { throw TestServerProcess.Failure(description: "no port could be taken") }
    }

    deinit { _ = close(descriptor) }
}

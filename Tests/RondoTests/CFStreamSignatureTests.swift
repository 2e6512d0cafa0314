import Rondo
import RondoTestSupport
import Testing

/// Pairs of streams to the address of a `CFSocketSignature`.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct CFStreamSignatureTests {
    /// The pair to the address whose `sockaddr` is in `bytes`.
    private static func pair(
        family: Int32, type: __socket_type, _ bytes: Data
    ) -> (CFReadStream?, CFWriteStream?) {
        let data = bytes as CFData
        var signature = CFSocketSignature(
            protocolFamily: family, socketType: type, protocol: 0, address: Unmanaged.passUnretained(data))
        var read: Unmanaged<CFReadStream>?
        var write: Unmanaged<CFWriteStream>?
        withExtendedLifetime(data) {
            CFStreamCreatePairWithPeerSocketSignature(nil, &signature, &read, &write)
        }
        return (read?.takeRetainedValue(), write?.takeRetainedValue())
    }

    @Test func `ST-39 a signature of datagrams gives no streams`() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = UInt16(9).bigEndian
        let bytes = Data(bytes: &address, count: MemoryLayout<sockaddr_in>.size)
        let (read, write) = Self.pair(family: PF_INET, type: SOCK_DGRAM, bytes)
        #expect(read == nil && write == nil)
    }

    @Test func `ST-39 a signature of a socket in the file system gives a pair to it`() throws {
        let path = NSTemporaryDirectory() + "/rondo-cf-\(UUID().uuidString)"
        defer { unlink(path) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let bytes = Data(bytes: &address, count: MemoryLayout<sockaddr_un>.size)
        let found = try onLoopThread { _ in
            let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            let isBound = bytes.withUnsafeBytes {
                bind(listener, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
            }
            guard isBound == 0, listen(listener, 8) == 0 else { return "not bound" }
            let (read, write) = Self.pair(family: PF_UNIX, type: SOCK_STREAM, bytes)
            guard let read, let write, CFReadStreamOpen(read), CFWriteStreamOpen(write) else { return "none" }
            defer {
                CFReadStreamClose(read)
                CFWriteStreamClose(write)
            }
            // The write returns when the connection waits to be accepted.
            guard CFWriteStreamWrite(write, Array("hello".utf8), 5) == 5 else { return "nothing written" }
            let peer = accept(listener, nil, nil)
            defer { close(peer) }
            var buffer = [UInt8](repeating: 0, count: 16)
            let count = recv(peer, &buffer, 5, Int32(MSG_WAITALL))
            guard send(peer, buffer, count, Int32(MSG_NOSIGNAL)) == count else { return "not sent" }
            buffer = [UInt8](repeating: 0, count: 16)
            let received = CFReadStreamRead(read, &buffer, 16)
            return String(decoding: buffer.prefix(max(0, received)), as: UTF8.self)
        }
        #expect(found == "hello")
    }
}

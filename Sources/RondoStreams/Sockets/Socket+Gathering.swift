internal import Glibc
internal import RondoCore

extension Socket {
    /// The most pieces of one call; the kernel's own limit (`IOV_MAX`) is 1,024.
    static let gatheringLimit = 64

    /// Writes the bytes of several pieces with one system call, perhaps fewer than given.
    func write(gathering pieces: [UnsafeRawBufferPointer]) throws(SocketError) -> WriteResult {
        var vectors = pieces.prefix(Self.gatheringLimit).map {
            iovec(iov_base: UnsafeMutableRawPointer(mutating: $0.baseAddress), iov_len: $0.count)
        }
        let outcome = vectors.withUnsafeMutableBufferPointer { vectors in
            var message = msghdr()
            message.msg_iov = vectors.baseAddress
            message.msg_iovlen = vectors.count
            return SocketCalls.send(descriptor, message)
        }
        switch outcome {
        case .bytes(let count): return .bytes(count)
        case .wouldBlock: return .wantsWrite
        case .failed(let code): throw SocketError(code: code, operation: .write, address: nil)
        }
    }

    static func peerAddress(of descriptor: Int32) -> SocketAddress? {
        SocketAddress.of(descriptor, getpeername)
    }
}

extension SocketAddress {
    /// The address that `getpeername`, `getsockname` or `accept` finds; nil if the call fails.
    static func of(
        _ descriptor: Int32,
        _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
            guard call(descriptor, start, &size) == 0 else { return nil }
            return SocketAddress(sockaddr: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(size))))
        }
    }
}

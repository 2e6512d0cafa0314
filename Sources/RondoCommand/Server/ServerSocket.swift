import Rondo

/// Blocking sockets, as plain as they come.
enum ServerSocket {
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        var description: String { String(cString: strerror(code)) }
    }

    /// A listening descriptor, and `address:port` of it as a URL has it.
    static func listen(address: String, port: UInt16) throws(Failure) -> (descriptor: Int32, address: String)
    {
        var internet = sockaddr_in()
        if inet_pton(AF_INET, address, &internet.sin_addr) == 1 {
            internet.sin_family = sa_family_t(AF_INET)
            internet.sin_port = port.bigEndian
            let descriptor = try listen(internet, family: AF_INET)
            try check(nameOf(descriptor, &internet))
            return (descriptor, "\(address):\(UInt16(bigEndian: internet.sin_port))")
        }
        var internet6 = sockaddr_in6()
        guard inet_pton(AF_INET6, address, &internet6.sin6_addr) == 1 else { throw Failure(code: EINVAL) }
        internet6.sin6_family = sa_family_t(AF_INET6)
        internet6.sin6_port = port.bigEndian
        let descriptor = try listen(internet6, family: AF_INET6)
        try check(nameOf(descriptor, &internet6))
        return (descriptor, "[\(address)]:\(UInt16(bigEndian: internet6.sin6_port))")
    }

    private static func listen<Address>(_ address: Address, family: Int32) throws(Failure) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, kind, 0)
        try check(descriptor)
        do {
            setOption(SO_REUSEADDR, 1, of: descriptor, level: SOL_SOCKET)
            let bound = withUnsafeBytes(of: address) {
                bind(
                    descriptor, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
            }
            try check(bound)
            try check(Glibc.listen(descriptor, SOMAXCONN))
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    private static func nameOf<Address>(_ descriptor: Int32, _ address: inout Address) -> Int32 {
        withUnsafeMutableBytes(of: &address) {
            var length = socklen_t($0.count)
            return getsockname(descriptor, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
        }
    }

    private static func check(_ result: Int32) throws(Failure) {
        if result < 0 { throw Failure(code: errno) }
    }

    /// Options make things better and are not needed, so a refusal is let pass.
    static func setOption(_ option: Int32, _ value: Int32, of descriptor: Int32, level: Int32) {
        var value = value
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The next client; nil if it went away again or no descriptor was free.
    static func accept(_ descriptor: Int32) -> Int32? {
        let client = Glibc.accept(descriptor, nil, nil)
        if client >= 0 { return client }
        let code = errno
        // Out of descriptors or memory: trying again at once would spin.
        if code != EINTR && code != ECONNABORTED { usleep(50_000) }
        return nil
    }

    /// Waits until there is something to read. False if `seconds` have passed.
    static func waitToRead(_ descriptor: Int32, seconds: Double) -> Bool {
        let watch = ContinuousClock.now + .seconds(seconds)
        while true {
            let left = (watch - ContinuousClock.now) / .milliseconds(1)
            guard left > 0 else { return false }
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&entry, 1, Int32(min(left.rounded(.up), 1e6)))
            if count > 0 { return true }
            if count < 0 && errno != EINTR { return false }
        }
    }

    /// Reads what there is. 0 at the end, negative if the connection broke.
    static func receive(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Sends all of `bytes`. False if the client has gone.
    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = Glibc.send(descriptor, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
            if count < 0 {
                if errno == EINTR { continue }
                return false
            }
            rest = rest.dropFirst(count)
        }
        return true
    }
}

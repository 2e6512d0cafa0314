import RondoCore
import RondoMutex
import RondoTestSupport

final class Deferred {
    private let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
    deinit { body() }
}

/// Sends bytes to each client that connects, and closes.
final class ContentServer {
    private let listener: TestListener
    var port: UInt16 { listener.port }

    init(_ bytes: [UInt8]) throws {
        let listener = try TestListener()
        self.listener = listener
        // The thread keeps the listener, or it might accept on a number that is another's by then.
        Thread.detachNewThread {
            let peer = listener.accept()
            guard peer >= 0 else { return }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard count > 0 else { break }
                rest = rest.dropFirst(count)
            }
            close(peer)
        }
    }

    deinit { shutdown(listener.descriptor, Int32(SHUT_RDWR)) }
}

/// Keeps the bytes that were received on a connection, to its end.
final class Sink: Sendable {
    private let bytes = Mutex<[UInt8]>([])
    private let done = DispatchSemaphore(value: 0)

    func take(_ peer: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(peer, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            bytes.withLock { $0 += buffer.prefix(count) }
        }
        done.signal()
    }

    func received() -> [UInt8] {
        guard done.wait(timeout: .now() + 30) == .success else { return [] }
        return bytes.withLock { $0 }
    }
}

/// Takes one connection and reads it to its end.
final class SinkServer {
    private let listener: TestListener
    private let sink = Sink()
    var port: UInt16 { listener.port }

    init() throws {
        let listener = try TestListener()
        self.listener = listener
        // The thread keeps the listener, or it might accept on a number that is another's by then.
        Thread.detachNewThread { [sink] in
            let peer = listener.accept()
            sink.take(peer)
            if peer >= 0 { close(peer) }
        }
    }

    deinit { shutdown(listener.descriptor, Int32(SHUT_RDWR)) }

    func received() -> [UInt8] { sink.received() }
}

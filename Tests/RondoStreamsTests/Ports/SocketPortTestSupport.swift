import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

// Foundation's has the same name.
typealias SocketPort = RondoStreams.SocketPort

/// Sends a message to `port` by a remote port for its address; gives what has come.
func exchange(to port: SocketPort, _ text: String) throws -> [String] {
    let inbox = PortInbox(port)
    let remote = try port.remote
    try onLoopThread { loop in
        loop.add(port, forMode: .default)
        #expect(remote.send(text, before: .distantFuture))
        while inbox.texts.isEmpty, loop.run(untilSource: .default) == .handledSource {}
    }
    return inbox.texts
}

extension Socket {
    /// Waits for room as long as it takes.
    func sendAll(_ bytes: Data) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                switch SocketCalls.send(descriptor, piece.baseAddress, piece.count) {
                case .bytes(let count): rest = rest.dropFirst(count)
                case .wouldBlock: _ = SocketCalls.wait(descriptor, for: POLLOUT, until: .never)
                case .failed: return false
                }
            }
            return true
        }
    }
}

func onThrowingThread(_ body: @escaping @Sendable (RunLoop) throws -> Void) throws {
    try onLoopThread { loop in Result { try body(loop) } }.get()
}

/// Notes the messages of a port.
final class PortInbox: PortDelegate, Sendable {
    private struct State {
        var texts: [String] = []
        var numbers: [UInt32] = []
        var onMessage: (@Sendable (PortMessage) -> Void)?
    }

    private let state = Mutex(State())

    init(_ port: Port) { port.setDelegate(self) }

    var texts: [String] { state.withLock { $0.texts } }
    var numbers: [UInt32] { state.withLock { $0.numbers } }
    var count: Int { numbers.count }
    var onMessage: (@Sendable (PortMessage) -> Void)? {
        get { state.withLock { $0.onMessage } }
        set { state.withLock { $0.onMessage = newValue } }
    }

    func handle(_ message: PortMessage) {
        let text = (message.components?.first as? NSData).map {
            String(decoding: Data(referencing: $0), as: UTF8.self)
        }
        let number = message.msgid
        let action = state.withLock { state in
            state.texts.append(text ?? "")
            state.numbers.append(number)
            return state.onMessage
        }
        action?(message)
    }
}

extension Port {
    func send(
        _ text: String, before date: Date = Date(timeIntervalSinceNow: 10), msgid: Int = 0,
        from port: Port? = nil
    ) -> Bool {
        send(before: date, msgid: msgid, components: [Data(text.utf8)], from: port, reserved: 0)
    }
}

extension SocketPort {
    convenience init?(
        at address: SocketAddress, type: Int32 = Int32(SOCK_STREAM.rawValue)
    ) {
        self.init(
            protocolFamily: address.family, socketType: type, protocol: 0,
            address: address.sockaddrData ?? Data())
    }

    var socketAddress: SocketAddress? {
        address.withUnsafeBytes { SocketAddress(sockaddr: $0) }
    }

    /// The port as another process has it.
    var remote: SocketPort {
        get throws {
            SocketPort(
                remoteWithProtocolFamily: protocolFamily, socketType: socketType, protocol: `protocol`,
                address: address)
        }
    }
}

extension RunLoop {
    /// Until a source was handled; the limit is for failures only.
    @discardableResult
    func run(untilSource mode: Mode) -> RunResult {
        run(in: mode, for: 60, returnAfterSourceHandled: true)
    }

    func poll(_ mode: Mode) {
        _ = run(in: mode, for: 0, returnAfterSourceHandled: false)
    }

    /// Until a source was handled, and for a moment where none is.
    func runBriefly(_ seconds: TimeInterval = 0.01) {
        _ = run(in: .default, for: seconds, returnAfterSourceHandled: true)
    }
}

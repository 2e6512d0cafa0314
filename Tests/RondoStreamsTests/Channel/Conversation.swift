import RondoCore
import RondoStreams
import RondoTestSupport

/// A channel and what it has said, on the thread of a test.
final class Conversation {
    let channel: SocketChannel
    private(set) var events: [SocketChannel.Event] = []
    private(set) var received: [UInt8] = []
    private(set) var ending: SocketChannel.ReadResult?
    var toSend: ArraySlice<UInt8> = []
    var capacity = 65_536
    var onEvent: ((SocketChannel.Event) -> Void)?

    convenience init(_ port: UInt16, host: String = "127.0.0.1", tls: TLSSettings? = nil) {
        self.init(SocketChannel(.init(host: host, port: Int(port), tls: tls)))
    }

    init(_ channel: SocketChannel) {
        self.channel = channel
        channel.handler = { [weak self] event in
            // A test that has ended lets go of its client, while another thread may still be in its loop.
            guard let self else { return }
            // How often it comes depends on the pieces in which the proxy's words come.
            if case .negotiating = event { return }
            // `secured` or `failed` always follows it.
            if case .securing = event { return }
            events.append(event)
            onEvent?(event)
            switch event {
            case .readable: read()
            case .writable: write()
            default: break
            }
        }
    }

    var words: [String] { events.map { $0.word } }

    /// The error of the channel; nil if it has not failed.
    var failure: ChannelError? { if case .failed(let error) = events.last { error } else { nil } }

    /// In the default mode of a loop.
    func open(in loop: RunLoop) {
        channel.schedule(in: loop, forMode: .default)
        channel.open()
    }

    /// Sends a text and wants what comes back.
    func say(_ text: String) {
        toSend = Array(text.utf8)[...]
        channel.wantsRead = true
        write()
    }

    var text: String { String(decoding: received, as: UTF8.self) }

    func read() {
        var buffer = [UInt8](repeating: 0, count: capacity)
        guard let result = try? buffer.withUnsafeMutableBytes({ try channel.read(into: $0) }) else { return }
        switch result {
        case .bytes(let count): received += buffer.prefix(count)
        case .wouldBlock: break
        case .end, .truncated:
            ending = result
            channel.wantsRead = false
        }
    }

    func write() {
        while !toSend.isEmpty {
            guard let count = try? toSend.withUnsafeBytes({ try channel.write($0) }), count > 0 else { break }
            toSend = toSend.dropFirst(count)
        }
        channel.wantsWrite = !toSend.isEmpty
    }
}

extension SocketChannel.Event {
    var word: String {
        switch self {
        case .resolving: "resolving"
        case .connecting: "connecting"
        case .connected: "connected"
        case .negotiating: "negotiating"
        case .securing: "securing"
        case .secured: "secured"
        case .open: "open"
        case .readable: "readable"
        case .writable: "writable"
        case .failed: "failed"
        }
    }
}

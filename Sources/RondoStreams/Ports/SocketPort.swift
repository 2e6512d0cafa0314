internal import Glibc
public import RondoCore

/// A port that other processes can send to, or a representative of such a port of another process.
///
/// A *local* port has a socket of its own: once added to a run loop it receives messages, which its delegate
/// gets in the modes that hold the port. A *remote* port stands for one of another process, and messages are
/// sent through it; two remote ports for one address are equal and share a connection (rules PM-11 to PM-15).
/// Name, interface and wire format are those of Foundation's class, so that each can talk to the other;
/// Foundation's own waits for Foundation's run loop.
///
/// Everything that can reach the address can send to the port. A local port therefore listens on the loopback
/// address unless it is given another one, and is no public service: answer only trusted peers, because a
/// message itself names the address for its answer, and give answers a near date, because that address may
/// accept no bytes. Bytes that are no message close only their own connection; memory and connections have
/// limits (`maximumMessageSize`, `maximumComponents`, `maximumConnections`, `maximumUnfinishedBytes`,
/// `Port.maximumQueuedMessages`).
///
/// Peers that use Foundation's class ignore a message without components, and one with a single component of
/// fewer than 12 bytes; they lose a message that arrives in pieces, as large ones do, or together with the
/// next one. As `sendPort` of their messages they name the port that receives them, which is nil here: to be
/// answered, such a peer must send a port among the components.
open class SocketPort: Port, @unchecked Sendable {
    // `@unchecked Sendable` like its superclass: its own properties are immutable.

    /// The default of `maximumMessageSize` in bytes: 16 MiB.
    public static let defaultMaximumMessageSize = PortLimits.defaultMessageSize
    /// The default of `maximumConnections`: 256.
    public static let defaultMaximumConnections = PortLimits.defaultConnections
    /// The most components of a message: 4,096.
    public static let maximumComponents = WireMessage.maximumComponents
    /// The most bytes of unfinished messages of all connections of a port, and the most bytes of peers'
    /// messages that wait in its queue: 64 MiB each. Beyond the first limit, the connection that has been
    /// silent longest is closed; beyond the second, nothing is read.
    public static let maximumUnfinishedBytes = PortLimits.unfinishedBytes

    private enum End: Sendable {
        case local(PortReceiver)
        case remote(PortSender)
        /// The socket could not be made; the port is invalid.
        case missing
    }

    private let end: End
    private let limits = PortLimits()

    // MARK: Local ports

    /// Makes a port with a free TCP port number on the loopback address. If no socket can be made, the port
    /// is invalid, and a warning is logged.
    public override init() {
        let signature = PortSignature.tcp(.loopback(port: 0))
        // Apple's interface cannot return the error.
        if let endpoint = try? PortEndpoint(signature) {
            let receiver = PortReceiver(endpoint, signature, limits)
            end = .local(receiver)
            super.init(backing: receiver)
            receiver.begin(for: self)
        } else {
            end = .missing
            super.init()
            warnOnce(.socket, "it could not be made, and is invalid")
            invalidate()
        }
    }

    /// Makes a port with this TCP port number on the loopback address; 0 takes a free one. Nil if the number
    /// is in use, or not allowed.
    public convenience init?(tcpPort port: UInt16) {
        let signature = PortSignature.tcp(.loopback(port: port))
        self.init(
            protocolFamily: signature.family, socketType: signature.type,
            protocol: signature.protocolNumber, address: signature.address)
    }

    /// Makes a port at an address: a `struct sockaddr` of IPv4, IPv6 or a Unix-domain socket, whose file the
    /// port makes and removes.
    ///
    /// - Parameters:
    ///   - family: `PF_INET`, `PF_INET6` or `PF_UNIX`, that of the address.
    ///   - type: `SOCK_STREAM`, or `SOCK_DGRAM` for messages of one datagram each.
    /// - Returns: Nil if the address cannot be bound to, or the arguments do not fit together.
    public init?(protocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: Data) {
        let signature = PortSignature(
            family: family, type: type, protocolNumber: `protocol`, address: address)
        // Apple's interface cannot return the error, here and below.
        guard let endpoint = try? PortEndpoint(signature) else { return nil }
        let receiver = PortReceiver(endpoint, signature, limits)
        end = .local(receiver)
        super.init(backing: receiver)
        receiver.begin(for: self)
    }

    /// Makes a port with a bound socket, which must listen if its type is `SOCK_STREAM`. The port closes it.
    ///
    /// - Returns: Nil if it is no such socket; the caller still owns it then.
    public init?(
        protocolFamily family: Int32, socketType type: Int32, protocol: Int32,
        socket sock: SocketNativeHandle
    ) {
        let unnamed = PortSignature(
            family: family, type: type, protocolNumber: `protocol`, address: Data())
        guard let endpoint = try? PortEndpoint(adopting: sock, unnamed.kind) else { return nil }
        let receiver = PortReceiver(endpoint, unnamed, limits)
        end = .local(receiver)
        super.init(backing: receiver)
        receiver.begin(for: self)
    }

    // MARK: Remote ports

    /// Makes a port for this TCP port number of a host. Looks the name up, which may block. IPv4 is
    /// preferred.
    ///
    /// - Parameter hostName: Nil or empty means this machine.
    /// - Returns: Nil if there is no such host.
    public convenience init?(remoteWithTCPPort port: UInt16, host hostName: String?) {
        let name = hostName.flatMap { $0.isEmpty ? nil : Resolver.withoutBrackets($0) }
        guard let name else {
            self.init(remote: .tcp(.loopback(port: port)))
            return
        }
        // The error cannot be returned, as above.
        let found =
            Resolver.numeric(host: name, port: port).map { [$0] }
            ?? (try? Resolver.addresses(host: name, port: port).get()) ?? []
        guard let address = found.first(where: { $0.family == AF_INET }) ?? found.first else { return nil }
        self.init(remote: .tcp(address))
    }

    /// Makes a port for an address: see `init(protocolFamily:socketType:protocol:address:)`.
    public init(
        remoteWithProtocolFamily family: Int32, socketType type: Int32, protocol: Int32, address: Data
    ) {
        end = .remote(
            PortSender.shared(
                for: PortSignature(
                    family: family, type: type, protocolNumber: `protocol`, address: address)))
        super.init()
    }

    convenience init(remote signature: PortSignature) {
        self.init(
            remoteWithProtocolFamily: signature.family, socketType: signature.type,
            protocol: signature.protocolNumber, address: signature.address)
    }

    // MARK: Properties

    var signature: PortSignature? {
        switch end {
        case .local(let receiver): receiver.signature
        case .remote(let sender): sender.signature
        case .missing: nil
        }
    }

    /// `PF_INET`, `PF_INET6` or `PF_UNIX`.
    open var protocolFamily: Int32 { signature?.family ?? PF_UNSPEC }
    open var socketType: Int32 { signature?.type ?? 0 }
    open var `protocol`: Int32 { signature?.protocolNumber ?? 0 }
    /// The address of the port: a `struct sockaddr`.
    open var address: Data { signature?.address ?? Data() }

    /// The descriptor of a local port; -1 for a remote or invalid one.
    open var socket: SocketNativeHandle {
        if case .local(let receiver) = end { receiver.descriptor } else { -1 }
    }

    /// The length in bytes, head included, of the longest message that is sent or received; 16 MiB by
    /// default. A connection that announces a longer one is closed. Any thread.
    public var maximumMessageSize: Int {
        get { limits.maximumMessageSize }
        set { limits.maximumMessageSize = newValue }
    }

    /// The most connections of peers at a time, at least 1, by default 256. With each one beyond, the
    /// connection that has been silent longest is closed. (A port that sends to this one makes a new
    /// connection for its next message.) Any thread.
    public var maximumConnections: Int {
        get { limits.maximumConnections }
        set { limits.maximumConnections = newValue }
    }

    /// The number of peers' connections; for tests.
    package var connectionCount: Int {
        if case .local(let receiver) = end { receiver.connectionCount } else { 0 }
    }

    // MARK: Equality

    open override var hash: Int {
        if case .remote(let sender) = end { sender.signature.hashValue } else { super.hash }
    }

    /// Two remote ports for one address are equal; a local port is equal only to itself.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? SocketPort else { return false }
        if case .remote(let one) = end, case .remote(let two) = other.end {
            return one.signature == two.signature
        }
        return self === other
    }

    // MARK: Sending

    /// Sends a message to this port: over its connection, or, if it is a local port, into its queue (rule
    /// PM-2).
    ///
    /// The caller is blocked while the connection is made and while the peer accepts no bytes, at most until
    /// the date. If only a part was sent by then, the connection is closed. True means that the kernel has
    /// the whole message, not that the peer has handled it.
    /// - Parameters:
    ///   - components: `Data` and socket ports, at most `maximumComponents`.
    ///   - receivePort: The port for the answer, a socket port; nil: none.
    open override func send(
        before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        guard isValid, let content = content(msgid: msgID, components: components, from: receivePort) else {
            return false
        }
        switch end {
        case .local: return enqueue(content, before: limitDate)
        case .remote(let sender):
            do throws(PortWriteError) {
                let bytes = try WireMessage.bytes(
                    of: content, to: sender.signature, maximum: maximumMessageSize)
                return sender.send(bytes, before: limitDate)
            } catch {
                let target = sender.signature.socketAddress.map { " to \($0)" } ?? ""
                warnOnce(.message, "\(error), and was not sent\(target)")
                return false
            }
        case .missing: return false
        }
    }
}

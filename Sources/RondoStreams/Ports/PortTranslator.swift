internal import Glibc
internal import RondoCore

/// Makes of a message as it came what the delegate of a local port gets.
struct PortTranslator {
    /// Where the port is that it came to.
    let own: SocketAddress?

    /// The message of a connection.
    func content(of message: WireMessage, on connection: PortConnection) -> PortContent {
        let signature = replySignature(message.sender, from: connection.peer, at: connection.local)
        return content(
            of: message, from: connection.peer, replyPort: connection.replyPort(for: signature))
    }

    /// The message of a datagram.
    func content(of message: WireMessage, from peer: SocketAddress?) -> PortContent {
        let signature = replySignature(message.sender, from: peer, at: nil)
        return content(of: message, from: peer, replyPort: signature.map { SocketPort(remote: $0) })
    }

    private func content(
        of message: WireMessage, from peer: SocketAddress?, replyPort: Port?
    ) -> PortContent {
        PortContent(
            msgid: message.msgid,
            components: message.components.map { component in
                switch component {
                case .data(let data): .data(data)
                case .port(let signature): .port(SocketPort(remote: signature.reached(from: peer)))
                }
            },
            sender: replyPort)
    }

    /// The port for the reply that a message names.
    ///
    /// Nil where it names the port that it has come to, which says that there is none: the field cannot be empty, and a
    /// reply would come back here for ever. Nil also where a peer of the network names a Unix socket: it is no business
    /// of a stranger's what else listens on this machine.
    private func replySignature(
        _ signature: PortSignature?, from peer: SocketAddress?, at local: SocketAddress?
    ) -> PortSignature? {
        guard let signature, signature.kind != nil, let address = signature.socketAddress else { return nil }
        if [own, local].contains(where: { $0?.unmapped == address.unmapped }) { return nil }
        if address.isUnspecified, let own, own.isUnspecified, address.port == own.port { return nil }
        if address.port == nil, own?.port != nil { return nil }
        return signature.reached(from: peer)
    }
}

extension SocketAddress {
    /// The IPv4 address that an address of IPv6 stands for, where a socket takes both.
    fileprivate var unmapped: SocketAddress {
        guard case .ipv6(0, let low, let port, _) = self, low >> 32 == 0xffff else { return self }
        return .ipv4(UInt32(truncatingIfNeeded: low), port: port)
    }
}

extension PortSignature {
    /// A port that names no address of its machine is where its peer is.
    fileprivate func reached(from peer: SocketAddress?) -> PortSignature {
        guard let address = socketAddress, address.isUnspecified, let port = address.port, let peer,
            peer.port != nil
        else { return self }
        // The address' own family may differ from the peer's: "::" reached over IPv4.
        return PortSignature(
            family: peer.family, type: type, protocolNumber: protocolNumber,
            address: peer.withPort(port).sockaddrData ?? self.address)
    }
}

internal import Glibc
internal import RondoCore

/// Turns a received message into the content that the delegate of a local port gets.
struct PortTranslator {
    /// The address of the port that received the message.
    let own: SocketAddress?

    /// The content of a message from a connection.
    func content(of message: WireMessage, on connection: PortConnection) -> PortContent {
        let signature = replySignature(message.sender, from: connection.peer, at: connection.local)
        return content(
            of: message, from: connection.peer, replyPort: connection.replyPort(for: signature))
    }

    /// The content of a message from a datagram.
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

    /// The signature of the port for the reply.
    ///
    /// Nil if the message names the port that received it: the field cannot be empty, so this means that no
    /// reply is wanted, and a reply would return here endlessly. Nil also if a peer from the network names a
    /// Unix socket: a stranger must not reach other listeners on this machine.
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

extension PortSignature {
    /// The signature with the peer's address, if it names only the wildcard address.
    fileprivate func reached(from peer: SocketAddress?) -> PortSignature {
        guard let address = socketAddress, address.isUnspecified, let port = address.port, let peer,
            peer.port != nil
        else { return self }
        // The families may differ: "::" that is reached over IPv4, for example.
        return PortSignature(
            family: peer.family, type: type, protocolNumber: protocolNumber,
            address: peer.withPort(port).sockaddrData ?? self.address)
    }
}

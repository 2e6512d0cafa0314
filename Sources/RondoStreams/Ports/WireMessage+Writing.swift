internal import RondoCore

/// The reason why a message cannot be sent to another process: the beginning of a sentence.
enum PortWriteError: Error, Equatable, CustomStringConvertible {
    case tooLong(maximum: Int)
    case tooManyComponents
    case componentIsNoSocketPort
    case answerIsNoSocketPort
    case address

    var description: String {
        switch self {
        case .tooLong(let maximum): "a message is longer than \(maximum) bytes"
        case .tooManyComponents: "a message has more than \(WireMessage.maximumComponents) components"
        case .componentIsNoSocketPort: "a message has a port among its components that is no socket port"
        case .answerIsNoSocketPort: "a message has a port for the answer that is no socket port"
        case .address: "a message has a port whose family, type or address does not fit the format"
        }
    }
}

extension WireMessage {
    /// The bytes of a message to the port of `target`.
    static func bytes(
        of content: PortContent, to target: PortSignature, maximum: Int
    ) throws(PortWriteError) -> Data {
        var answer = target
        if let sender = content.sender {
            guard let own = (sender as? SocketPort)?.signature else { throw .answerIsNoSocketPort }
            answer = own
        }
        var components: [(type: UInt32, bytes: Data)] = []
        for component in content.components {
            switch component {
            case .data(let data): components.append((dataType, data))
            case .port(let port):
                guard let signature = (port as? SocketPort)?.signature else { throw .componentIsNoSocketPort }
                guard let bytes = signature.wireBytes else { throw .address }
                components.append((portType, Data(bytes)))
            }
        }
        guard components.count <= maximumComponents else { throw .tooManyComponents }
        guard let head = answer.wireBytes else { throw .address }
        return try bytes(msgid: content.msgid, signature: head, components: components, maximum: maximum)
    }

    static func bytes(
        msgid: UInt32, signature: [UInt8], components: [(type: UInt32, bytes: Data)], maximum: Int
    ) throws(PortWriteError) -> Data {
        let size = components.reduce(headSize + signature.count) { $0 + componentHeadSize + $1.bytes.count }
        guard size <= maximum, let length = UInt32(exactly: size) else { throw .tooLong(maximum: maximum) }
        var message = Data(capacity: size)
        message.append(contentsOf: magic.bytes + length.bytes + msgid.bytes + signature)
        for component in components {
            message.append(contentsOf: component.type.bytes + UInt32(component.bytes.count).bytes)
            message.append(component.bytes)
        }
        return message
    }
}

/// The content of a message, on its way to the thread that handles it.
package struct PortContent: Sendable {
    package enum Component: Sendable {
        case data(Data)
        case port(Port)
    }

    /// The assumed overhead of a component besides its bytes, in bytes: an object, or a port with its state.
    private static let componentOverhead = 512

    package let msgid: UInt32
    package let components: [Component]
    /// The port for the answer.
    package let sender: Port?

    package init(msgid: UInt32, components: [Component], sender: Port?) {
        (self.msgid, self.components, self.sender) = (msgid, components, sender)
    }

    /// Copies the components (rule PM-5).
    ///
    /// - Returns: Nil if a component is neither data nor a port.
    init?(msgid: Int, components: NSArray?, sender: Port?) {
        var copies: [Component] = []
        for component in components ?? [] {
            switch component {
            case let port as Port: copies.append(.port(port))
            // Not matched as `Data`, which may share the bytes of an object that changes.
            case let data as NSData: copies.append(.data(Data(bytes: data.bytes, count: data.length)))
            case let data as Data: copies.append(.data(data))
            default: return nil
            }
        }
        self.init(msgid: UInt32(truncatingIfNeeded: msgid), components: copies, sender: sender)
    }

    /// The approximate memory of the content, in bytes.
    var size: Int {
        components.reduce(0) { sum, component in
            switch component {
            case .data(let data): sum + Self.componentOverhead + data.count
            case .port: sum + Self.componentOverhead
            }
        }
    }

    func message(through port: Port) -> PortMessage {
        let objects = components.map { component -> AnyObject in
            switch component {
            case .data(let data): NSData(data: data)
            case .port(let port): port
            }
        }
        let message = PortMessage(sendPort: sender, receivePort: port, components: objects)
        message.msgid = msgid
        return message
    }
}

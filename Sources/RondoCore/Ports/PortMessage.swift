/// Receives the messages of a port. See `Port.setDelegate(_:)`.
public protocol PortDelegate: AnyObject {
    /// Called for each message, on the thread of a loop that holds the port, while the loop runs in a mode
    /// that holds the port (rule PM-3).
    func handle(_ message: PortMessage)
}

/// A message that has arrived through a port, or is to be sent through one.
///
/// It has the name of Foundation's class, which cannot be used because it refers to Foundation's `Port`
/// rather than Rondo's (rule PM-16).
/// - Note: Not Sendable. Use a received message only on the thread that handled it.
open class PortMessage: NSObject, NSCopying {
    /// A number for the program's use; it is delivered unchanged (rule PM-6).
    open var msgid: UInt32 = 0
    /// The components, `NSData` and `Port`, in the order sent.
    open private(set) var components: [AnyObject]?
    /// The port through which the message arrived; in a message to be sent, the port for the answer.
    open private(set) var receivePort: Port?
    /// The port for the answer; in a message to be sent, the port to send it through.
    open private(set) var sendPort: Port?

    public init(sendPort: Port?, receivePort: Port?, components: [AnyObject]?) {
        self.sendPort = sendPort
        self.receivePort = receivePort
        self.components = components
    }

    /// The initializer as on Apple's systems, where components need not be objects.
    public convenience init(send sendPort: Port?, receive replyPort: Port?, components: [Any]?) {
        self.init(
            sendPort: sendPort, receivePort: replyPort,
            components: components?.map { ($0 as? Data).map { NSData(data: $0) } ?? $0 as AnyObject })
    }

    /// Sends the message through `sendPort`. See `Port.send(before:msgid:components:from:reserved:)`.
    open func send(before date: Date) -> Bool {
        sendPort?.send(
            before: date, msgid: Int(msgid), components: NSMutableArray(array: components ?? []),
            from: receivePort, reserved: 0) ?? false
    }

    /// Returns the message itself, which does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

@available(*, unavailable)
extension PortMessage: Sendable {}

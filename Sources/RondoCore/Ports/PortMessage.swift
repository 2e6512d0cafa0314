/// Receives the messages of a port. See `Port.setDelegate(_:)`.
public protocol PortDelegate: AnyObject {
    /// Called for each message, on the thread of a loop that holds the port, while it runs in a mode that holds it
    /// (rule PM-3).
    func handle(_ message: PortMessage)
}

/// A message that has come through a port, or is to be sent through one.
///
/// By Foundation's name, since Foundation's speaks of Foundation's `Port`, which Rondo's is not (rule PM-16).
/// - Note: Not Sendable. A message that came is used where it was handled.
open class PortMessage: NSObject, NSCopying {
    /// A number of the program's; it comes through unchanged (rule PM-6).
    open var msgid: UInt32 = 0
    /// `NSData` and `Port`, in the order sent.
    open private(set) var components: [AnyObject]?
    /// The port that the message came through; of one to be sent, the port for the answer.
    open private(set) var receivePort: Port?
    /// The port for the answer; of a message to be sent, the port it goes through.
    open private(set) var sendPort: Port?

    public init(sendPort: Port?, receivePort: Port?, components: [AnyObject]?) {
        self.sendPort = sendPort
        self.receivePort = receivePort
        self.components = components
    }

    /// As on Apple's systems, where components need not be objects.
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

    /// The message itself, which does not change.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

@available(*, unavailable)
extension PortMessage: Sendable {}

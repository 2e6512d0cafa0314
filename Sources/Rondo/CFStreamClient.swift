// Core Foundation's clients of streams: callbacks with a context, in place of a delegate.

/// What a stream tells its client; `canAcceptBytes` is Core Foundation's word for `hasSpaceAvailable`.
public typealias CFStreamEventType = Stream.Event
public typealias CFStreamStatus = Stream.Status

extension Stream.Event {
    public static var canAcceptBytes: Stream.Event { .hasSpaceAvailable }
}

/// What a client's callback is handed, and how that is kept.
public struct CFStreamClientContext {
    /// Returns `info` retained; called once, by `CFReadStreamSetClient` or `CFWriteStreamSetClient`.
    public typealias RetainCallBack = @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    /// Balances the retain: the stream has got another client, or is gone.
    public typealias ReleaseCallBack = @Sendable (UnsafeMutableRawPointer?) -> Void
    /// Not asked.
    public typealias CopyDescriptionCallBack = @Sendable (UnsafeMutableRawPointer?) -> String?

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?
    public var retain: RetainCallBack?
    public var release: ReleaseCallBack?
    public var copyDescription: CopyDescriptionCallBack?

    public init(
        version: CFIndex = 0, info: UnsafeMutableRawPointer? = nil, retain: RetainCallBack? = nil,
        release: ReleaseCallBack? = nil, copyDescription: CopyDescriptionCallBack? = nil
    ) {
        self.version = version
        self.info = info
        self.retain = retain
        self.release = release
        self.copyDescription = copyDescription
    }
}

/// A closure that could be a C function, as it is there.
public typealias CFReadStreamClientCallBack =
    @Sendable (CFReadStream?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void
/// The same of a stream that is written.
public typealias CFWriteStreamClientCallBack =
    @Sendable (CFWriteStream?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void

/// Has `clientCB` called for those events of `stream` that `streamEvents` names, where and when a delegate
/// would be: on the run loops and modes, or the queue, of the stream.
///
/// A stream has one client, and that or a delegate: setting either replaces the other. What the context says
/// is copied; its `info` is retained, if it says how, for as long as it is the stream's.
/// - Parameters:
///   - streamEvents: Raw values of events; 0 takes the client away, as nil for either of the next two does.
/// - Returns: True: all streams can tell.
@discardableResult
public func CFReadStreamSetClient(
    _ stream: CFReadStream!, _ streamEvents: CFOptionFlags, _ clientCB: CFReadStreamClientCallBack!,
    _ clientContext: UnsafeMutablePointer<CFStreamClientContext>!
) -> Bool {
    // Held weakly there, and by itself.
    let client = StreamClient<CFReadStream>(streamEvents, clientCB, clientContext?.pointee)
    stream.delegate = client
    return true
}

/// The same for a stream that is written; see `CFReadStreamSetClient`.
@discardableResult
public func CFWriteStreamSetClient(
    _ stream: CFWriteStream!, _ streamEvents: CFOptionFlags, _ clientCB: CFWriteStreamClientCallBack!,
    _ clientContext: UnsafeMutablePointer<CFStreamClientContext>!
) -> Bool {
    let client = StreamClient<CFWriteStream>(streamEvents, clientCB, clientContext?.pointee)
    stream.delegate = client
    return true
}

/// A callback as a delegate. It keeps itself alive until it is replaced or its stream goes.
private final class StreamClient<Client: Stream>: LastingDelegate {
    typealias CallBack = @Sendable (Client?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void

    private let events: Stream.Event
    private let callBack: CallBack
    private let info: UnsafeMutableRawPointer?
    private var release: CFStreamClientContext.ReleaseCallBack?
    private var itself: StreamClient?

    /// Nil: none.
    init?(_ events: CFOptionFlags, _ callBack: CallBack?, _ context: CFStreamClientContext?) {
        guard events != 0, let callBack, let context else { return nil }
        self.events = Stream.Event(rawValue: events)
        self.callBack = callBack
        if let info = context.info, let retain = context.retain {
            self.info = retain(info)
        } else {
            info = context.info
        }
        release = context.release
        itself = self
    }

    func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        guard events.contains(eventCode) else { return }
        callBack(aStream as? Client, eventCode, info)
    }

    func end() {
        let release = release
        self.release = nil
        itself = nil
        if let info { release?(info) }
    }
}

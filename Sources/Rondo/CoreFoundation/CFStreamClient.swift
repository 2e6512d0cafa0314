// Core Foundation's clients of streams: callbacks with a context, instead of a delegate.

/// The events of a stream; Core Foundation's name for `hasSpaceAvailable` is `canAcceptBytes`.
public typealias CFStreamEventType = Stream.Event
public typealias CFStreamStatus = Stream.Status

extension Stream.Event {
    public static var canAcceptBytes: Stream.Event { .hasSpaceAvailable }
}

/// The `info` that a client's callback gets, and the functions that retain and release it.
public struct CFStreamClientContext {
    /// Returns `info` retained; called once, by `CFReadStreamSetClient` or `CFWriteStreamSetClient`.
    public typealias RetainCallBack = @Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
    /// Balances the retain. Called when the stream has another client, or has been freed, and the callback is
    /// not running.
    public typealias ReleaseCallBack = @Sendable (UnsafeMutableRawPointer?) -> Void
    /// Never called.
    public typealias CopyDescriptionCallBack = @Sendable (UnsafeMutableRawPointer?) -> Unmanaged<CFString>?

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

/// A closure; in Core Foundation it is a C function.
public typealias CFReadStreamClientCallBack =
    @Sendable (CFReadStream?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void
/// The same for an output stream.
public typealias CFWriteStreamClientCallBack =
    @Sendable (CFWriteStream?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void

/// Makes `stream` call `clientCB` for the events in `streamEvents`, where and when it would call a delegate:
/// on its run loops and modes, or on its queue.
///
/// A stream has either one client or a delegate: setting one replaces the other. The context is copied; its
/// `info` is retained, if the context has a retain function, until the stream no longer uses it.
/// - Parameters:
///   - streamEvents: Raw values of events; 0 removes the client, as nil for either of the next two arguments
///     does.
/// - Returns: True, since every stream can have a client.
@discardableResult
public func CFReadStreamSetClient(
    _ stream: CFReadStream!, _ streamEvents: CFOptionFlags, _ clientCB: CFReadStreamClientCallBack!,
    _ clientContext: UnsafeMutablePointer<CFStreamClientContext>!
) -> Bool {
    // The stream holds the client weakly; the client retains itself.
    let client = StreamClient<CFReadStream>(streamEvents, clientCB, clientContext?.pointee)
    stream.delegate = client
    return true
}

/// The same for an output stream; see `CFReadStreamSetClient`.
@discardableResult
public func CFWriteStreamSetClient(
    _ stream: CFWriteStream!, _ streamEvents: CFOptionFlags, _ clientCB: CFWriteStreamClientCallBack!,
    _ clientContext: UnsafeMutablePointer<CFStreamClientContext>!
) -> Bool {
    let client = StreamClient<CFWriteStream>(streamEvents, clientCB, clientContext?.pointee)
    stream.delegate = client
    return true
}

/// A delegate that calls a client's callback. It retains itself until it is replaced or its stream is freed;
/// the stream retains it during each call.
private final class StreamClient<Client: Stream>: RetainedDelegate {
    typealias CallBack = @Sendable (Client?, CFStreamEventType, UnsafeMutableRawPointer?) -> Void

    private let events: Stream.Event
    private let callBack: CallBack
    private let info: UnsafeMutableRawPointer?
    private let release: CFStreamClientContext.ReleaseCallBack?
    private var itself: StreamClient?

    /// Returns nil if the arguments mean no client.
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
        guard events.contains(eventCode) else { return aStream.noteIgnored(eventCode) }
        callBack(aStream as? Client, eventCode, info)
    }

    func end() { itself = nil }

    deinit {
        if let info { release?(info) }
    }
}

// What Core Foundation's contexts have in common, and its type identifiers.

/// Returns `info` retained. Called once, when a source, timer or observer is made with a context.
public typealias CFContextRetainCallBack = @Sendable (UnsafeRawPointer?) -> UnsafeRawPointer?
/// Balances the retain: when the source, timer or observer is invalidated or goes, and no callback of it is
/// under way.
public typealias CFContextReleaseCallBack = @Sendable (UnsafeRawPointer?) -> Void
/// A name for `info`: it becomes the `label` of the source, timer or observer.
public typealias CFContextCopyDescriptionCallBack = @Sendable (UnsafeRawPointer?) -> String?

/// A context, whose `info` can be retained and released.
protocol InfoContext: Sendable {
    var info: UnsafeMutableRawPointer? { get set }
    var retain: CFContextRetainCallBack? { get }
    var release: CFContextReleaseCallBack? { get }
    var copyDescription: CFContextCopyDescriptionCallBack? { get }
}

/// The `info` that is handed to a callback, and how it is kept: the context of timers, observers, sockets, descriptors and
/// hosts, each of which has a name of its own for it.
public struct CFCallBackContext: InfoContext, @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer, handed back to its own callback and not looked at
    // here.

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?
    public var retain: CFContextRetainCallBack?
    public var release: CFContextReleaseCallBack?
    public var copyDescription: CFContextCopyDescriptionCallBack?

    public init(
        version: CFIndex = 0, info: UnsafeMutableRawPointer? = nil, retain: CFContextRetainCallBack? = nil,
        release: CFContextReleaseCallBack? = nil, copyDescription: CFContextCopyDescriptionCallBack? = nil
    ) {
        self.version = version
        self.info = info
        self.retain = retain
        self.release = release
        self.copyDescription = copyDescription
    }
}

/// A context in use: its `info` is retained as long as this lives.
final class HeldContext<Context: InfoContext>: Sendable {
    let context: Context
    /// As it was handed in; what it is the order of may ignore it.
    let order: CFIndex

    init(_ context: Context, order: CFIndex) {
        self.order = order
        var held = context
        if let info = context.info, let retain = context.retain {
            held.info = UnsafeMutableRawPointer(mutating: retain(info))
        }
        self.context = held
    }

    deinit {
        if let info = context.info { context.release?(info) }
    }

    var info: UnsafeMutableRawPointer? { context.info }
    var label: String? { context.copyDescription?(context.info) }
}

/// Tells the kinds of objects apart: the same number for all objects of a kind, for as long as the program
/// runs.
public typealias CFTypeID = UInt

public func CFRunLoopGetTypeID() -> CFTypeID { CFTypeID(bitPattern: ObjectIdentifier(CFRunLoop.self)) }

public func CFRunLoopSourceGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFRunLoopSource.self))
}

public func CFRunLoopTimerGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFRunLoopTimer.self))
}

public func CFRunLoopObserverGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFRunLoopObserver.self))
}

/// The kind of `object`, to be compared with one of `CFRunLoopGetTypeID()` and its kin.
public func CFGetTypeID(_ object: AnyObject) -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(type(of: object)))
}

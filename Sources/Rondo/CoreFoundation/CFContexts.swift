// The common part of Core Foundation's contexts, and its type identifiers.

/// Returns `info` retained. Called once, when a source, timer or observer is made with a context.
public typealias CFContextRetainCallBack = @Sendable (UnsafeRawPointer?) -> UnsafeRawPointer?
/// Balances the retain. Called when the source, timer or observer has been invalidated or freed, and none of
/// its callbacks is running.
public typealias CFContextReleaseCallBack = @Sendable (UnsafeRawPointer?) -> Void
/// Returns a name for `info`, retained, which becomes the `label` of the source, timer or observer.
public typealias CFContextCopyDescriptionCallBack = @Sendable (UnsafeRawPointer?) -> Unmanaged<CFString>?

/// A context whose `info` can be retained and released.
protocol InfoContext: Sendable {
    var info: UnsafeMutableRawPointer? { get set }
    var retain: CFContextRetainCallBack? { get }
    var release: CFContextReleaseCallBack? { get }
    var copyDescription: CFContextCopyDescriptionCallBack? { get }
}

/// The `info` that a callback gets, and the functions that retain and release it: the context of timers,
/// observers, sockets, descriptors and hosts, each of which has its own name for it.
public struct CFCallBackContext: InfoContext, @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer. It is passed back to the program's callback and
    // never dereferenced here.

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

/// A context in use: its `info` is retained until this object is freed.
final class HeldContext<Context: InfoContext>: Sendable {
    let context: Context
    /// The order that was passed in; the source, timer or observer may ignore it.
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

    /// Copies the context that `attachment` holds, without retaining `info`; does nothing if it holds none of
    /// this type.
    static func copy(
        _ attachment: (any AnyObject & Sendable)?, to context: UnsafeMutablePointer<Context>?
    ) {
        if let held = attachment as? HeldContext<Context> { context?.pointee = held.context }
    }

    /// Calls the program's function for the description, which it returns retained.
    func copyLabel() -> String? {
        context.copyDescription?(context.info).map { $0.takeRetainedValue() as String }
    }
}

/// Identifies the type of an object: the same number for all objects of a type, for as long as the program
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

/// The type of `object`, to be compared with `CFRunLoopGetTypeID()` and its kin.
public func CFGetTypeID(_ object: AnyObject) -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(type(of: object)))
}

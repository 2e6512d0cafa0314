// Core Foundation's run loop sources: thin, no logic.

/// The callbacks of a source of version 0, which is signalled by hand, and their `info`.
///
/// `equal` and `hash` are never called: two sources are equal if they are the same object (rule SRC-13).
public struct CFRunLoopSourceContext: InfoContext, @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer. It is passed back to the program's callbacks and
    // never dereferenced here.

    public typealias EqualCallBack = @Sendable (UnsafeRawPointer?, UnsafeRawPointer?) -> DarwinBoolean
    public typealias HashCallBack = @Sendable (UnsafeRawPointer?) -> CFHashCode
    public typealias ModeCallback = @Sendable (UnsafeMutableRawPointer?, CFRunLoop?, CFRunLoopMode?) -> Void

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?
    public var retain: CFContextRetainCallBack?
    public var release: CFContextReleaseCallBack?
    public var copyDescription: CFContextCopyDescriptionCallBack?
    public var equal: EqualCallBack?
    public var hash: HashCallBack?
    public var schedule: ModeCallback?
    public var cancel: ModeCallback?
    public var perform: (@Sendable (UnsafeMutableRawPointer?) -> Void)?

    public init(
        version: CFIndex = 0, info: UnsafeMutableRawPointer? = nil, retain: CFContextRetainCallBack? = nil,
        release: CFContextReleaseCallBack? = nil, copyDescription: CFContextCopyDescriptionCallBack? = nil,
        equal: EqualCallBack? = nil, hash: HashCallBack? = nil, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: (@Sendable (UnsafeMutableRawPointer?) -> Void)? = nil
    ) {
        self.version = version
        self.info = info
        self.retain = retain
        self.release = release
        self.copyDescription = copyDescription
        self.equal = equal
        self.hash = hash
        self.schedule = schedule
        self.cancel = cancel
        self.perform = perform
    }
}

/// The callbacks of a source of version 1, which the kernel signals, and their `info`.
///
/// Linux has no Mach ports: `getPort` returns a file descriptor, and the source is served when that can be
/// read. `perform` gets only `info`, since there is no message.
public struct CFRunLoopSourceContext1: InfoContext, @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer. It is passed back to the program's callbacks and
    // never dereferenced here.

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?
    public var retain: CFContextRetainCallBack?
    public var release: CFContextReleaseCallBack?
    public var copyDescription: CFContextCopyDescriptionCallBack?
    public var equal: CFRunLoopSourceContext.EqualCallBack?
    public var hash: CFRunLoopSourceContext.HashCallBack?
    public var getPort: @Sendable (UnsafeMutableRawPointer?) -> Int32
    public var perform: @Sendable (UnsafeMutableRawPointer?) -> Void

    public init(
        version: CFIndex = 1, info: UnsafeMutableRawPointer? = nil, retain: CFContextRetainCallBack? = nil,
        release: CFContextReleaseCallBack? = nil, copyDescription: CFContextCopyDescriptionCallBack? = nil,
        equal: CFRunLoopSourceContext.EqualCallBack? = nil, hash: CFRunLoopSourceContext.HashCallBack? = nil,
        getPort: @escaping @Sendable (UnsafeMutableRawPointer?) -> Int32,
        perform: @escaping @Sendable (UnsafeMutableRawPointer?) -> Void
    ) {
        self.version = version
        self.info = info
        self.retain = retain
        self.release = release
        self.copyDescription = copyDescription
        self.equal = equal
        self.hash = hash
        self.getPort = getPort
        self.perform = perform
    }
}

/// `RunLoop.Source(order:schedule:cancel:perform:)`.
public func CFRunLoopSourceCreate(
    _ allocator: CFAllocator?, _ order: CFIndex, _ context: UnsafeMutablePointer<CFRunLoopSourceContext>
) -> CFRunLoopSource! {
    let held = HeldContext(context.pointee, order: order)
    let source = CFRunLoopSource(
        order: order,
        schedule: { loop, mode in held.context.schedule?(held.info, loop, mode) },
        cancel: { loop, mode in held.context.cancel?(held.info, loop, mode) },
        perform: { held.context.perform?(held.info) })
    source.attachment = held
    source.label = held.copyLabel()
    return source
}

/// `RunLoop.Source(fileDescriptor:interest:perform:)`; the order is ignored (rule SRC-14).
public func CFRunLoopSourceCreate(
    _ allocator: CFAllocator?, _ order: CFIndex, _ context: UnsafeMutablePointer<CFRunLoopSourceContext1>
) -> CFRunLoopSource! {
    let held = HeldContext(context.pointee, order: order)
    let source = CFRunLoopSource(fileDescriptor: held.context.getPort(held.info), interest: .read) { _, _ in
        held.context.perform(held.info)
    }
    source.attachment = held
    source.label = held.copyLabel()
    return source
}

/// Copies the context with which `source` was made, without retaining `info`; does nothing if it was made
/// without a context or with one of the other version, or is invalid.
public func CFRunLoopSourceGetContext(
    _ source: CFRunLoopSource?, _ context: UnsafeMutablePointer<CFRunLoopSourceContext>?
) {
    HeldContext.copy(source?.attachment, to: context)
}

/// The same for a context of version 1.
public func CFRunLoopSourceGetContext(
    _ source: CFRunLoopSource?, _ context: UnsafeMutablePointer<CFRunLoopSourceContext1>?
) {
    HeldContext.copy(source?.attachment, to: context)
}

public func CFRunLoopSourceSignal(_ source: CFRunLoopSource?) { source?.signal() }

public func CFRunLoopSourceInvalidate(_ source: CFRunLoopSource?) { source?.invalidate() }

public func CFRunLoopSourceIsValid(_ source: CFRunLoopSource?) -> Bool { source?.isValid ?? false }

/// The order with which `source` was made; a source of version 1 ignores it (rule SRC-14).
public func CFRunLoopSourceGetOrder(_ source: CFRunLoopSource?) -> CFIndex {
    (source?.attachment as? HeldContext<CFRunLoopSourceContext1>)?.order ?? source?.order ?? 0
}

// Core Foundation's run loop sources of version 0, those that are signalled by hand: thin, no logic.

/// The callbacks of a source and what is handed to them.
///
/// `retain`, `release` and `copyDescription` are not here: what `info` points to has to live as long as the
/// source. `equal` and `hash` are not either: two sources are the same if they are one object (rule SRC-13).
public struct CFRunLoopSourceContext: @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer, handed back to its own callbacks and not looked at
    // here.

    public typealias ModeCallback = @Sendable (UnsafeMutableRawPointer?, CFRunLoop?, CFRunLoopMode?) -> Void

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?
    public var schedule: ModeCallback?
    public var cancel: ModeCallback?
    public var perform: (@Sendable (UnsafeMutableRawPointer?) -> Void)?

    public init(
        version: CFIndex = 0, info: UnsafeMutableRawPointer? = nil, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: (@Sendable (UnsafeMutableRawPointer?) -> Void)? = nil
    ) {
        self.version = version
        self.info = info
        self.schedule = schedule
        self.cancel = cancel
        self.perform = perform
    }
}

/// `RunLoop.Source(order:schedule:cancel:perform:)`.
public func CFRunLoopSourceCreate(
    _ allocator: CFAllocator?, _ order: CFIndex, _ context: UnsafeMutablePointer<CFRunLoopSourceContext>
) -> CFRunLoopSource? {
    let context = context.pointee
    return CFRunLoopSource(
        order: order,
        schedule: { loop, mode in context.schedule?(context.info, loop, mode) },
        cancel: { loop, mode in context.cancel?(context.info, loop, mode) },
        perform: { context.perform?(context.info) })
}

public func CFRunLoopSourceSignal(_ source: CFRunLoopSource?) { source?.signal() }

public func CFRunLoopSourceInvalidate(_ source: CFRunLoopSource?) { source?.invalidate() }

public func CFRunLoopSourceIsValid(_ source: CFRunLoopSource?) -> Bool { source?.isValid ?? false }

public func CFRunLoopSourceGetOrder(_ source: CFRunLoopSource?) -> CFIndex { source?.order ?? 0 }

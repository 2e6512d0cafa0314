// Core Foundation's run loop observers: thin, no logic.

/// What is handed to an observer's callback.
public struct CFRunLoopObserverContext: @unchecked Sendable {
    // `@unchecked`: `info` is the program's own pointer, handed back to its own callback and not looked at
    // here.

    public var version: CFIndex
    public var info: UnsafeMutableRawPointer?

    public init(version: CFIndex = 0, info: UnsafeMutableRawPointer? = nil) {
        self.version = version
        self.info = info
    }
}

public typealias CFRunLoopObserverCallBack =
    @Sendable (CFRunLoopObserver?, CFRunLoopActivity, UnsafeMutableRawPointer?) -> Void

/// `RunLoop.Observer(activities:repeats:order:_:)`.
public func CFRunLoopObserverCreate(
    _ allocator: CFAllocator?, _ activities: CFOptionFlags, _ repeats: Bool, _ order: CFIndex,
    _ callout: @escaping CFRunLoopObserverCallBack, _ context: UnsafeMutablePointer<CFRunLoopObserverContext>?
) -> CFRunLoopObserver? {
    let context = context?.pointee
    return CFRunLoopObserverCreateWithHandler(allocator, activities, repeats, order) { observer, activity in
        callout(observer, activity, context?.info)
    }
}

/// `RunLoop.Observer(activities:repeats:order:_:)`.
public func CFRunLoopObserverCreateWithHandler(
    _ allocator: CFAllocator?, _ activities: CFOptionFlags, _ repeats: Bool, _ order: CFIndex,
    _ block: @escaping @Sendable (CFRunLoopObserver?, CFRunLoopActivity) -> Void
) -> CFRunLoopObserver? {
    CFRunLoopObserver(
        activities: CFRunLoopActivity(rawValue: activities), repeats: repeats, order: order, block)
}

public func CFRunLoopObserverGetActivities(_ observer: CFRunLoopObserver?) -> CFOptionFlags {
    observer?.activities.rawValue ?? 0
}

public func CFRunLoopObserverDoesRepeat(_ observer: CFRunLoopObserver?) -> Bool { observer?.repeats ?? false }

public func CFRunLoopObserverGetOrder(_ observer: CFRunLoopObserver?) -> CFIndex { observer?.order ?? 0 }

public func CFRunLoopObserverInvalidate(_ observer: CFRunLoopObserver?) { observer?.invalidate() }

public func CFRunLoopObserverIsValid(_ observer: CFRunLoopObserver?) -> Bool { observer?.isValid ?? false }

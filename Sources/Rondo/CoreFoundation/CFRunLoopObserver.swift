// Core Foundation's run loop observers: thin, no logic.

/// The context that an observer's callback gets.
public typealias CFRunLoopObserverContext = CFCallBackContext

public typealias CFRunLoopObserverCallBack =
    @Sendable (CFRunLoopObserver?, CFRunLoopActivity, UnsafeMutableRawPointer?) -> Void

/// `RunLoop.Observer(activities:repeats:order:_:)`.
public func CFRunLoopObserverCreate(
    _ allocator: CFAllocator?, _ activities: CFOptionFlags, _ repeats: Bool, _ order: CFIndex,
    _ callout: @escaping CFRunLoopObserverCallBack, _ context: UnsafeMutablePointer<CFRunLoopObserverContext>?
) -> CFRunLoopObserver! {
    let held = HeldContext(context?.pointee ?? CFRunLoopObserverContext(), order: order)
    let observer = CFRunLoopObserverCreateWithHandler(allocator, activities, repeats, order) {
        callout($0, $1, held.info)
    }
    observer?.attachment = held
    observer?.label = held.copyLabel()
    return observer
}

/// Copies the context with which `observer` was made, without retaining `info`; does nothing if it was made
/// without one, or is invalid.
public func CFRunLoopObserverGetContext(
    _ observer: CFRunLoopObserver?, _ context: UnsafeMutablePointer<CFRunLoopObserverContext>?
) {
    HeldContext.copy(observer?.attachment, to: context)
}

/// `RunLoop.Observer(activities:repeats:order:_:)`.
public func CFRunLoopObserverCreateWithHandler(
    _ allocator: CFAllocator?, _ activities: CFOptionFlags, _ repeats: Bool, _ order: CFIndex,
    _ block: @escaping @Sendable (CFRunLoopObserver?, CFRunLoopActivity) -> Void
) -> CFRunLoopObserver! {
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

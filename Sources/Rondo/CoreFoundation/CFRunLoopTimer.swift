// Core Foundation's run loop timers: thin, no logic. An interval of 0 or less means "fires once" (rule TM-7);
// flags and order are ignored, as they are on Apple's systems (rule TM-23).

/// The context that a timer's callback gets.
public typealias CFRunLoopTimerContext = CFCallBackContext

public typealias CFRunLoopTimerCallBack = @Sendable (CFRunLoopTimer?, UnsafeMutableRawPointer?) -> Void

/// `Timer(fire:interval:repeats:block:)`.
public func CFRunLoopTimerCreate(
    _ allocator: CFAllocator?, _ fireDate: CFAbsoluteTime, _ interval: CFTimeInterval, _ flags: CFOptionFlags,
    _ order: CFIndex, _ callout: @escaping CFRunLoopTimerCallBack,
    _ context: UnsafeMutablePointer<CFRunLoopTimerContext>?
) -> CFRunLoopTimer! {
    let held = HeldContext(context?.pointee ?? CFRunLoopTimerContext(), order: order)
    let timer = CFRunLoopTimerCreateWithHandler(allocator, fireDate, interval, flags, order) {
        callout($0, held.info)
    }
    timer?.attachment = held
    timer?.label = held.copyLabel()
    return timer
}

/// Copies the context with which `timer` was made, without retaining `info`; does nothing if it was made
/// without one, or is invalid.
public func CFRunLoopTimerGetContext(
    _ timer: CFRunLoopTimer?, _ context: UnsafeMutablePointer<CFRunLoopTimerContext>?
) {
    HeldContext.copy(timer?.attachment, to: context)
}

/// `Timer(fire:interval:repeats:block:)`.
public func CFRunLoopTimerCreateWithHandler(
    _ allocator: CFAllocator?, _ fireDate: CFAbsoluteTime, _ interval: CFTimeInterval, _ flags: CFOptionFlags,
    _ order: CFIndex, _ block: @escaping @Sendable (CFRunLoopTimer?) -> Void
) -> CFRunLoopTimer! {
    let timer = CFRunLoopTimer(
        fire: Date(timeIntervalSinceReferenceDate: fireDate), interval: interval, repeats: interval > 0,
        block: block)
    timer.attachment = HeldContext(CFRunLoopTimerContext(), order: order)
    return timer
}

public func CFRunLoopTimerGetNextFireDate(_ timer: CFRunLoopTimer?) -> CFAbsoluteTime {
    timer?.fireDate.timeIntervalSinceReferenceDate ?? 0
}

public func CFRunLoopTimerSetNextFireDate(_ timer: CFRunLoopTimer?, _ fireDate: CFAbsoluteTime) {
    timer?.fireDate = Date(timeIntervalSinceReferenceDate: fireDate)
}

public func CFRunLoopTimerGetInterval(_ timer: CFRunLoopTimer?) -> CFTimeInterval { timer?.timeInterval ?? 0 }

public func CFRunLoopTimerDoesRepeat(_ timer: CFRunLoopTimer?) -> Bool { (timer?.timeInterval ?? 0) > 0 }

/// The order with which `timer` was made, which has no effect.
public func CFRunLoopTimerGetOrder(_ timer: CFRunLoopTimer?) -> CFIndex {
    (timer?.attachment as? HeldContext<CFRunLoopTimerContext>)?.order ?? 0
}

public func CFRunLoopTimerInvalidate(_ timer: CFRunLoopTimer?) { timer?.invalidate() }

public func CFRunLoopTimerIsValid(_ timer: CFRunLoopTimer?) -> Bool { timer?.isValid ?? false }

public func CFRunLoopTimerGetTolerance(_ timer: CFRunLoopTimer?) -> CFTimeInterval { timer?.tolerance ?? 0 }

public func CFRunLoopTimerSetTolerance(_ timer: CFRunLoopTimer?, _ tolerance: CFTimeInterval) {
    timer?.tolerance = tolerance
}

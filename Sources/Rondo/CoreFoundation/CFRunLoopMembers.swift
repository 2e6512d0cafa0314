// Core Foundation's functions that put sources, timers and observers into modes: thin, no logic.

public func CFRunLoopAddSource(_ loop: CFRunLoop?, _ source: CFRunLoopSource?, _ mode: CFRunLoopMode) {
    if let source { loop?.add(source, forMode: mode) }
}

public func CFRunLoopRemoveSource(_ loop: CFRunLoop?, _ source: CFRunLoopSource?, _ mode: CFRunLoopMode) {
    if let source { loop?.remove(source, forMode: mode) }
}

public func CFRunLoopContainsSource(
    _ loop: CFRunLoop?, _ source: CFRunLoopSource?, _ mode: CFRunLoopMode
) -> Bool {
    guard let loop, let source else { return false }
    return loop.contains(source, forMode: mode)
}

public func CFRunLoopAddTimer(_ loop: CFRunLoop?, _ timer: CFRunLoopTimer?, _ mode: CFRunLoopMode) {
    if let timer { loop?.add(timer, forMode: mode) }
}

public func CFRunLoopRemoveTimer(_ loop: CFRunLoop?, _ timer: CFRunLoopTimer?, _ mode: CFRunLoopMode) {
    if let timer { loop?.remove(timer, forMode: mode) }
}

public func CFRunLoopContainsTimer(
    _ loop: CFRunLoop?, _ timer: CFRunLoopTimer?, _ mode: CFRunLoopMode
) -> Bool {
    guard let loop, let timer else { return false }
    return loop.contains(timer, forMode: mode)
}

public func CFRunLoopAddObserver(
    _ loop: CFRunLoop?, _ observer: CFRunLoopObserver?, _ mode: CFRunLoopMode
) {
    if let observer { loop?.add(observer, forMode: mode) }
}

public func CFRunLoopRemoveObserver(
    _ loop: CFRunLoop?, _ observer: CFRunLoopObserver?, _ mode: CFRunLoopMode
) {
    if let observer { loop?.remove(observer, forMode: mode) }
}

public func CFRunLoopContainsObserver(
    _ loop: CFRunLoop?, _ observer: CFRunLoopObserver?, _ mode: CFRunLoopMode
) -> Bool {
    guard let loop, let observer else { return false }
    return loop.contains(observer, forMode: mode)
}

/// The date of the mode's nearest timer; 0 if there is none.
public func CFRunLoopGetNextTimerFireDate(_ loop: CFRunLoop?, _ mode: CFRunLoopMode) -> CFAbsoluteTime {
    loop?.nextTimerDate(forMode: mode)?.timeIntervalSinceReferenceDate ?? 0
}

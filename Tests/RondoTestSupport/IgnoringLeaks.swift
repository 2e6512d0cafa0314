internal import RondoCore

/// Calls `body`, which allocates what is never freed by design; LeakSanitizer, where it watches, does not
/// report it.
package func ignoringLeaks<Value>(_ body: () throws -> Value) rethrows -> Value {
    call("__lsan_disable")
    defer { call("__lsan_enable") }
    return try body()
}

/// A function of the sanitizer's runtime, if that is part of this process. It counts for this thread.
private func call(_ name: String) {
    guard let symbol = dlsym(nil, name) else { return }
    // Declared by the sanitizer as `void name(void)`.
    unsafeBitCast(symbol, to: (@convention(c) () -> Void).self)()
}

internal import RondoCore

/// Returns the number of bytes that this process uses: those that are resident, or, where a sanitizer keeps what was
/// freed, those that are allocated.
package func memoryInUse() throws -> Int {
    if let symbol = dlsym(nil, "__sanitizer_get_current_allocated_bytes") {
        // Declared by the sanitizers as `size_t name(void)`.
        return Int(unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)())
    }
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return (Int(text.split(separator: " ")[1]) ?? 0) * Int(getpagesize())
}

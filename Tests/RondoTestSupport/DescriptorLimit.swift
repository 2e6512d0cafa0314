internal import RondoCore

/// Calls `body` while this process can open no further descriptor. The limit is that of the process: for exit tests, which are
/// alone in theirs.
package func withNoDescriptorLeft<Value>(_ body: () throws -> Value) rethrows -> Value {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var usual = rlimit()
    getrlimit(resource, &usual)
    // As many as are open now.
    let next = dup(0)
    close(next)
    var limit = usual
    limit.rlim_cur = rlim_t(next)
    setrlimit(resource, &limit)
    defer { setrlimit(resource, &usual) }
    return try body()
}

/// Takes each number that a descriptor could have, for the rest of the process, so that only the number of one that is closed
/// is free. For exit tests.
package func takeAllDescriptors() {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    getrlimit(resource, &limit)
    limit.rlim_cur = min(limit.rlim_cur, 256)
    setrlimit(resource, &limit)
    while dup(0) >= 0 {}
}

/// Calls `body` and does nothing else: Swift frees an object when its last reference is released, and Linux
/// has no autoreleased references, so a thread needs no pool. On Apple's systems a run loop has one for each
/// pass, and code that runs a loop by itself makes one.
public func autoreleasepool<Failure: Error, Result>(
    invoking body: () throws(Failure) -> Result
) throws(Failure) -> Result {
    try body()
}

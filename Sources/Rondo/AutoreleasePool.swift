/// Calls `body`: Swift frees objects when the last reference to them goes, and there are no others on Linux, so a thread
/// needs no pool. The run loops of Apple's systems have one for each pass, and code that runs a loop by itself writes one.
public func autoreleasepool<Failure: Error, Result>(
    invoking body: () throws(Failure) -> Result
) throws(Failure) -> Result {
    try body()
}

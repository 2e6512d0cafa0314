// For values typed `Stream`, such as a delegate gets them: Rondo's own classes have the first two themselves.
extension Foundation.Stream {
    /// Has the stream call its delegate on `aRunLoop` while that runs in `mode`. The stream has to be one of
    /// Rondo's: Foundation's own deliver no events on Linux, and trap here.
    @_disfavoredOverload
    public func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        scheduleInRondo(aRunLoop, forMode: mode)
    }

    /// Takes back what `schedule(in:forMode:)` said.
    @_disfavoredOverload
    public func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        removeFromRondo(aRunLoop, forMode: mode)
    }

    /// `setProperty(_:forKey:)` with a value that is no object, as Apple's takes it: a dictionary, a string, a number.
    ///
    /// - Returns: Whether the value was accepted (rule ST-33).
    @_disfavoredOverload
    @discardableResult
    public func setProperty(_ property: Any?, forKey key: PropertyKey) -> Bool {
        setProperty(property.map { $0 as AnyObject }, forKey: key)
    }
}

// For values of the type `Stream`, which a delegate gets. Rondo's own classes declare the first two methods
// themselves. The last parameter, which no call writes, gives these two another signature: with the same one
// a subclass of those classes could not override their methods, because its override would be of both
// declarations.
extension Foundation.Stream {
    /// Makes the stream call its delegate on `aRunLoop` while the loop runs in `mode`. The stream has to be
    /// one of Rondo's: Foundation's own deliver no events on Linux, and trap here.
    @_disfavoredOverload
    public func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode, _ unused: Void = ()) {
        scheduleInRondo(aRunLoop, forMode: mode)
    }

    /// Undoes `schedule(in:forMode:)`.
    @_disfavoredOverload
    public func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode, _ unused: Void = ()) {
        removeFromRondo(aRunLoop, forMode: mode)
    }

    /// `setProperty(_:forKey:)` for a value that is not an object, as Apple's accepts it: a dictionary, a
    /// string, a number.
    ///
    /// - Returns: Whether the value was accepted (rule ST-33).
    @_disfavoredOverload
    @discardableResult
    public func setProperty(_ property: Any?, forKey key: PropertyKey) -> Bool {
        setProperty(property.map { $0 as AnyObject }, forKey: key)
    }
}

internal import Synchronization

/// Something to keep a mode from being empty: it never fires by itself.
///
/// A thread that serves others adds one to its loop, so that `RunLoop.run()` has something to wait for
/// (rules TH-7 and TH-8). Apple's `NSPort` carries Mach messages besides; there are none on Linux.
public final class Port: NSObject, Sendable {
    let source = RunLoop.Source {}

    public override init() { super.init() }

    /// Whether the port can still be scheduled.
    public var isValid: Bool { source.isValid }

    /// Takes the port out of every mode of every loop, for ever. Any thread.
    public func invalidate() { source.invalidate() }

    public func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { runLoop.add(self, forMode: mode) }

    public func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        runLoop.remove(self, forMode: mode)
    }
}

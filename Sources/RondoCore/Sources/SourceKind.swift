/// What differs between the kinds of run-loop source.
///
/// A new kind is a type that conforms to this, in a file of its own together with the initializers of such sources, and a
/// case of `RunLoop.Source.Kind`.
protocol SourceKind {
    /// Signalled sources of one pass are performed in increasing order (rule SRC-6).
    var order: Int { get }
    /// What the modes of the source watch; nil: the kernel tells nothing of it.
    var descriptor: Int32? { get }
    /// Whether `signal()` has it served.
    var takesSignals: Bool { get }

    /// Why `source` is not served though its loop waits in a mode that holds it; nil: nothing stands in the way.
    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle?

    /// What `RunLoop.debugDescription` says of `source`.
    func summary(of source: RunLoop.Source) -> String
}

/// What differs between the kinds of run-loop source.
///
/// A new kind is a type that conforms to this, in a file of its own together with the initializers of such
/// sources, and a case of `RunLoop.Source.Kind`.
protocol SourceKind {
    /// Signalled sources of one pass are performed in increasing order (rule SRC-6).
    var order: Int { get }
    /// The descriptor that modes watch for the source; nil: there is none.
    var descriptor: Int32? { get }
    /// Whether the source is served after `signal()`.
    var takesSignals: Bool { get }

    /// Why `source` is not served though its loop waits in a mode that holds it; nil: nothing stands in the
    /// way.
    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle?

    /// The line for `source` in `RunLoop.debugDescription`.
    func summary(of source: RunLoop.Source) -> String
}

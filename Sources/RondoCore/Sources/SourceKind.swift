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

extension RunLoop.Source {
    /// The kind of a source. An enum, which takes less memory than an existential.
    enum Kind {
        case signalled(SignalledKind)
        case descriptor(DescriptorKind)
        /// Elsewhere in memory, since few sources are of ports and all would be larger.
        indirect case port(PortKind)

        /// The behaviour in which the kinds differ. Only here are they told apart.
        var behaviour: any SourceKind {
            switch self {
            case .signalled(let kind): kind
            case .descriptor(let kind): kind
            case .port(let kind): kind
            }
        }

        /// As `behaviour` says, without a box for the existential, which each signal would make:
        /// source.performed of the guard takes 7 % fewer instructions.
        var takesSignals: Bool {
            switch self {
            case .signalled(let kind): kind.takesSignals
            case .descriptor(let kind): kind.takesSignals
            case .port: true
            }
        }
    }
}

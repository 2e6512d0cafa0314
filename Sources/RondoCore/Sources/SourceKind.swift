/// The behaviour in which the kinds of run-loop source differ.
///
/// A new kind is a type that conforms to this protocol, in a file of its own together with the initializers
/// of such sources, and a case of `RunLoop.Source.Kind`.
protocol SourceKind {
    /// The descriptor that modes watch for the source; nil if there is none.
    var descriptor: Int32? { get }
    /// Whether the source is served after `signal()`.
    var takesSignals: Bool { get }

    /// Why `source` is not served although its loop waits in a mode that holds it; nil if nothing prevents
    /// it.
    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle?

    /// The line for `source` in `RunLoop.debugDescription`.
    func summary(of source: RunLoop.Source) -> String
}

extension RunLoop.Source {
    /// The label in quotation marks, after a space; empty if there is none.
    var quotedLabel: String { label.map { " “\($0)”" } ?? "" }

    /// The kind of a source. An enum, because that takes less memory than an existential.
    enum Kind {
        case signalled(SignalledKind)
        case descriptor(DescriptorKind)
        /// Indirect: few sources belong to ports, and the case would make every source larger.
        indirect case port(PortKind)

        /// The behaviour of this kind. Only this type distinguishes the kinds.
        var behaviour: any SourceKind {
            switch self {
            case .signalled(let kind): kind
            case .descriptor(let kind): kind
            case .port(let kind): kind
            }
        }

        /// Signalled sources of one pass are performed in increasing order (rule SRC-6). Not part of the
        /// behaviour: it is read for each signal, and an existential would take longer.
        var order: Int {
            switch self {
            case .signalled(let kind): kind.order
            case .descriptor, .port: 0
            }
        }
    }
}

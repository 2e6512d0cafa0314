/// The kinds of event of step (j). They rotate from pass to pass, so that none starves the others.
enum EventKind: CaseIterable {
    case timers, mainQueue, descriptors

    var next: EventKind {
        switch self {
        case .timers: .mainQueue
        case .mainQueue: .descriptors
        case .descriptors: .timers
        }
    }
}

/// The kinds that a pass serves, in order. Not an array, which would cost an allocation for each pass.
struct EventKinds: Sequence, IteratorProtocol {
    private var kinds: (EventKind?, EventKind?, EventKind?) = (nil, nil, nil)
    private(set) var last: EventKind?

    /// The first ready kind in the rotation that begins with `first`, or with `all` every ready kind.
    init(from first: EventKind, all: Bool, isReady: (EventKind) -> Bool) {
        var kind = first
        for _ in EventKind.allCases {
            if isReady(kind) {
                append(kind)
                if !all { break }
            }
            kind = kind.next
        }
    }

    private mutating func append(_ kind: EventKind) {
        last = kind
        switch kinds {
        case (nil, _, _): kinds.0 = kind
        case (_, nil, _): kinds.1 = kind
        default: kinds.2 = kind
        }
    }

    mutating func next() -> EventKind? {
        defer { kinds = (kinds.1, kinds.2, nil) }
        return kinds.0
    }
}

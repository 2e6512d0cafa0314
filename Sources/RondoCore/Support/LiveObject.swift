internal import RondoMutex

/// Counts the objects that have it as a stored property, so that tests can find leaks.
///
/// It counts in debug builds only; in release builds it is empty and costs nothing.
package struct LiveObject: ~Copyable, Sendable {
    package enum Kind: Int, CaseIterable, Sendable {
        case timer, source, observer, stream, connection, urlConnection, load, session, sessionTask, child
    }

    #if DEBUG
        private static let counts = Mutex([Int](repeating: 0, count: Kind.allCases.count))

        private let kind: Kind

        package init(_ kind: Kind) {
            self.kind = kind
            Self.counts.withLock { $0[kind.rawValue] += 1 }
        }

        deinit {
            Self.counts.withLock { $0[kind.rawValue] -= 1 }
        }

        /// The number of live objects of each kind; nil in release builds.
        package static var census: [Kind: Int]? {
            let counts = counts.withLock { $0 }
            return Dictionary(uniqueKeysWithValues: Kind.allCases.map { ($0, counts[$0.rawValue]) })
        }
    #else
        package init(_ kind: Kind) {}

        package static var census: [Kind: Int]? { nil }
    #endif
}

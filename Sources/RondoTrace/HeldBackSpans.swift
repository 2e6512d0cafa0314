/// Turns looks at members that are held back into spans.
///
/// One look alone may fall between two runs of the same mode, when nothing is wrong; so a span needs to be seen
/// twice in a row, or at the end of a long run in another mode. It begins when it was seen first, or when a timer was
/// due.
package struct HeldBackSpans {
    package struct Held: Hashable {
        package var loop: UInt16
        package var mode: UInt16
        package var kind: TraceRecord.Kind
        package var subject: UInt32
        /// Nil where it is not known.
        package var since: Int64?

        package init(loop: UInt16, mode: UInt16, kind: TraceRecord.Kind, subject: UInt32, since: Int64?) {
            self.loop = loop
            self.mode = mode
            self.kind = kind
            self.subject = subject
            self.since = since
        }
    }

    private struct Span {
        let began: Int64
        var sightings = 0
    }

    /// Beginnings that may wait to be taken.
    private static let maximumBegun = 1024

    private var spans: [Held: Span] = [:]
    private var begun: [TraceRecord] = []

    package init() {}

    /// - Parameters:
    ///   - began: When recording began: no span does before.
    ///   - busyLoop: The loop that has been running long in one mode, and still is: what it holds back it does. It alone
    ///     was looked at.
    /// - Returns: The spans that are over.
    package mutating func look(
        _ found: [Held], at now: Int64, notBefore began: Int64, busyLoop: UInt16? = nil
    ) -> [TraceRecord] {
        let seen = Set(found)
        var over: [TraceRecord] = []
        for (held, span) in spans where (busyLoop ?? held.loop) == held.loop && !seen.contains(held) {
            spans[held] = nil
            if let record = record(of: held, span, at: now) { over.append(record) }
        }
        for held in seen {
            var span = spans[held] ?? Span(began: min(now, max(held.since ?? now, began)))
            let wasSure = span.sightings > 1
            span.sightings += held.loop == busyLoop ? 2 : 1
            spans[held] = span
            if !wasSure, begun.count < Self.maximumBegun,
                let record = record(of: held, span, at: span.began)
            {
                begun.append(record)
            }
        }
        return over
    }

    /// Spans that have begun since the last call, without a length: for a file, since a program that is killed
    /// ends none.
    package mutating func takeBegun() -> [TraceRecord] {
        defer { begun = [] }
        return begun
    }

    /// Those that are under way, as if they ended now.
    package func open(at now: Int64) -> [TraceRecord] {
        spans.compactMap { record(of: $0.key, $0.value, at: now) }
    }

    package mutating func end(at now: Int64) -> [TraceRecord] {
        defer { spans = [:] }
        return open(at: now)
    }

    private func record(of held: Held, _ span: Span, at now: Int64) -> TraceRecord? {
        guard span.sightings > 1 else { return nil }
        return TraceRecord(
            kind: .heldBack, began: span.began, duration: now - span.began, loop: held.loop, mode: held.mode,
            subject: held.subject, detail: held.kind.rawValue)
    }
}

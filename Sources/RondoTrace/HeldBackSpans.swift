/// Combines checks for held-back members into spans of time.
///
/// A single check may fall between two runs of the same mode, when nothing is wrong. So a span must be seen
/// in two checks in a row, or at the end of a long run in another mode. A span begins with the first check
/// that saw it, or when its timer was due.
package struct HeldBackSpans {
    package struct Held: Hashable {
        package var loop: UInt16
        package var mode: UInt16
        package var kind: TraceRecord.Kind
        package var subject: UInt32
        /// Nil if not known.
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

    /// The most beginnings that wait for `takeBegun()`.
    private static let maximumBegun = 1024

    private var spans: [Held: Span] = [:]
    private var begun: [TraceRecord] = []

    package init() {}

    /// Takes in the result of a check.
    ///
    /// - Parameters:
    ///   - began: The beginning of the recording: no span begins before it.
    ///   - busyLoop: The only loop that was checked: it has run one mode for long and still does, so one
    ///     check suffices for a span. Nil if all loops were checked.
    /// - Returns: The spans that have ended.
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

    /// The spans that have begun since the last call, without a length. They are for a file: a program that
    /// is killed ends no span.
    package mutating func takeBegun() -> [TraceRecord] {
        defer { begun = [] }
        return begun
    }

    /// The spans that have not ended, as if they ended now.
    package func open(at now: Int64) -> [TraceRecord] {
        spans.compactMap { record(of: $0.key, $0.value, at: now) }
    }

    package mutating func end(at now: Int64) -> [TraceRecord] {
        defer { spans = [:] }
        return open(at: now)
    }

    /// Has the spans refer to other tables.
    mutating func carry(by transfer: inout TableTransfer) {
        var carried: [Held: Span] = [:]
        for (held, span) in spans {
            var held = held
            held.loop = transfer.loop(held.loop)
            held.mode = transfer.mode(held.mode)
            held.subject = transfer.subject(held.subject)
            carried[held] = span
        }
        spans = carried
    }

    private func record(of held: Held, _ span: Span, at now: Int64) -> TraceRecord? {
        guard span.sightings > 1 else { return nil }
        // Another thread may have begun the span after this one has read the clock.
        return TraceRecord(
            kind: .heldBack, began: span.began, duration: max(0, now - span.began), loop: held.loop,
            mode: held.mode, subject: held.subject, detail: held.kind.rawValue)
    }
}

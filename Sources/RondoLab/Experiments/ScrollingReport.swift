package import Rondo

// The counts of the scrolling experiment, and the conclusion from them.
//
// The sentence at the end of the demo is computed from the counts. A change that breaks the isolation of
// modes leads to other counts, another sentence, and a failure.

/// The counts of one of the two loads.
package struct ScrollingLoad: Sendable, Equatable {
    package let name: String
    /// The mode that the connection is scheduled in; here `.common` stands for default and tracking.
    package let scheduledIn: RunLoop.Mode

    /// Bytes by the mode in which they were delivered, as `currentMode` returned it inside didReceiveData.
    package var bytes: [RunLoop.Mode: Int] = [:]
    /// The spans of tracking that began while this load was running, and their seconds.
    package var trackingSpans = 0
    package var trackingSeconds = 0.0
    /// Seconds from the start to the last callback.
    package var seconds: Double?
    package var failure: String?

    package init(name: String, scheduledIn: RunLoop.Mode) {
        self.name = name
        self.scheduledIn = scheduledIn
    }

    package var received: Int { bytes.values.reduce(0, +) }
    package var isInProgress: Bool { seconds == nil && failure == nil }

    /// The modes in which the delegate of this connection may be called.
    package var modes: [RunLoop.Mode] { scheduledIn == .common ? [.default, .tracking] : [scheduledIn] }

    package func bytes(in mode: RunLoop.Mode) -> Int { bytes[mode, default: 0] }
}

/// The counts of both loads of the scrolling experiment.
package struct ScrollingReport: Sendable, Equatable {
    /// The size in bytes of the file that both connections load.
    package let size: Int
    package var loads: [ScrollingLoad]

    package init(size: Int, loads: [ScrollingLoad]) {
        self.size = size
        self.loads = loads
    }

    package var isAsDocumented: Bool { contradictions.isEmpty }

    /// The counts that contradict the rules of modes, a clause for each.
    package var contradictions: [String] {
        loads.flatMap { load in
            var found: [String] = []
            if let failure = load.failure { found.append("\(load.name) failed: \(failure)") }
            for (mode, count) in load.bytes.sorted(by: { $0.key.rawValue < $1.key.rawValue })
            where count > 0 && !load.modes.contains(mode) {
                found.append(
                    "\(load.name) is scheduled in \(load.placement) and yet received "
                        + "\(TextFormats.grouped(count)) bytes in \(mode.spokenName)")
            }
            for mode in load.modes where load.bytes(in: mode) == 0 {
                found.append(
                    "\(load.name) is scheduled in \(load.placement) and yet received nothing in \(mode.spokenName)"
                )
            }
            if load.received != size {
                found.append(
                    "\(load.name) received \(TextFormats.grouped(load.received)) bytes of "
                        + TextFormats.grouped(size))
            }
            if load.trackingSpans == 0 {
                found.append(
                    "no span of tracking passed while \(load.name) was loading, so nothing was shown")
            }
            return found
        }
    }

    /// The explanation of the table.
    package var sentence: String {
        let contradictions = contradictions
        guard contradictions.isEmpty else {
            return "Not as documented: \(contradictions.joined(separator: "; "))."
        }
        return loads.map(\.explanation).joined(separator: " ")
    }

    package var json: JSONText {
        .object([
            ("size", .integer(size)),
            ("connections", .array(loads.map(\.json))),
            ("asDocumented", .bool(isAsDocumented)),
            ("why", .string(sentence)),
        ])
    }
}

extension ScrollingLoad {
    package var placement: String {
        scheduledIn == .common ? "the common modes" : "\(scheduledIn.spokenName) alone"
    }

    fileprivate var explanation: String {
        let spans = trackingSpans == 1 ? "one span" : "\(trackingSpans) spans"
        let tracked = "\(spans) of tracking (\(TextFormats.fixed(trackingSeconds, digits: 1)) s)"
        return bytes(in: .tracking) == 0
            ? "\(name) got nothing in \(tracked), because it is scheduled in \(placement): while the loop "
                + "runs in tracking nothing listens to its socket, and what the server sends waits in the kernel."
            : "\(name) got \(TextFormats.bytes(bytes(in: .tracking))) in \(tracked), because it is scheduled "
                + "in \(placement), of which tracking is one."
    }

    fileprivate var json: JSONText {
        let counts = bytes.filter { !modes.contains($0.key) && $0.value > 0 }
            .map { ($0.key.spokenName, $0.value) }
            .sorted { $0.0 < $1.0 }
        let always: [RunLoop.Mode] = [.default, .tracking]
        let listed = always.map { ($0.spokenName, bytes(in: $0)) }
        let others = counts.filter { count in !listed.contains { $0.0 == count.0 } }
        return .object([
            ("name", .string(name)),
            ("scheduledIn", .string(scheduledIn.spokenName)),
            ("bytes", .object((listed + others).map { ($0.0, .integer($0.1)) })),
            ("total", .integer(received)),
            ("trackingSpans", .integer(trackingSpans)),
            ("trackingSeconds", .number((trackingSeconds * 1000).rounded() / 1000)),
            ("seconds", seconds.map { .number(($0 * 1000).rounded() / 1000) } ?? .null),
        ])
    }
}

extension RunLoop.Mode {
    /// A short name of the mode: the raw values of the known modes are long.
    package var spokenName: String {
        switch self {
        case .default: "default"
        case .common: "common"
        case .tracking: "tracking"
        default: rawValue
        }
    }

    /// The mode with this short name: one of the known modes, or a custom one.
    package init(spokenName: String) {
        let known: [RunLoop.Mode] = [.default, .common, .tracking]
        self = known.first { $0.spokenName == spokenName } ?? RunLoop.Mode(spokenName)
    }
}

extension RunLoop.Activity: CustomStringConvertible {
    /// The names of its stages: "beforeTimers, beforeSources"; "allActivities", or "none".
    public var description: String {
        if self == .allActivities { return "allActivities" }
        let named: [(RunLoop.Activity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        let names = named.filter { contains($0.0) }.map(\.1)
        let known = named.reduce(into: RunLoop.Activity()) { $0.formUnion($1.0) }
        let rest = subtracting(known)
        let others = rest.isEmpty ? [] : ["0x" + String(rest.rawValue, radix: 16)]
        return isEmpty ? "none" : (names + others).joined(separator: ", ")
    }
}

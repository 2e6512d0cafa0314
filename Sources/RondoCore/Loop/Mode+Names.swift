extension Foundation.RunLoop.Mode {
    /// The mode that a user interface runs in while the user scrolls: an ordinary named mode, and common from
    /// the start (rules RL-19 and RL-26).
    public static let tracking = Foundation.RunLoop.Mode("NSEventTrackingRunLoopMode")
    /// `.tracking` by its AppKit name.
    public static let eventTracking = tracking

    /// Whether this is `.common`; asked at every addition. The default mode is compared first, by the
    /// identity of its string: the two names have the same length and beginning, so comparing their
    /// characters takes long.
    var namesCommonModes: Bool { self != .default && self == .common }

    /// The short name used in Rondo's messages: "default" for `kCFRunLoopDefaultMode`, "tracking", "the
    /// common modes"; the raw value of any other mode.
    public var shortName: String {
        switch self {
        case .default: "default"
        case .common: "the common modes"
        case .tracking: "tracking"
        default: rawValue
        }
    }

    /// The mode that has to be run for a member of this one: "in default". Of the common modes only each one
    /// can be run (rule RL-18).
    var adviceToRun: String {
        self == .common ? "in one of the common modes, such as default" : "in \(shortName)"
    }
}

extension Foundation.RunLoop.Mode {
    /// The mode that a user interface runs in while the user scrolls: an ordinary mode by name, and a common
    /// one from the start (rules RL-19 and RL-26).
    public static let tracking = Foundation.RunLoop.Mode("NSEventTrackingRunLoopMode")
    /// `.tracking` by its AppKit name.
    public static let eventTracking = tracking

    /// Whether this is `.common`, asked for every addition. The default mode is compared first, by the
    /// identity of its string: the names of the two are equally long and begin alike, so that comparing their
    /// letters takes long.
    var namesCommonModes: Bool { self != .default && self == .common }

    /// The name that people use, as all of Rondo's messages have it: "default" for `kCFRunLoopDefaultMode`, "tracking",
    /// "the common modes"; the raw value of any other mode.
    public var shortName: String {
        switch self {
        case .default: "default"
        case .common: "the common modes"
        case .tracking: "tracking"
        default: rawValue
        }
    }
}

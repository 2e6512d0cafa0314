internal import RondoCore

/// The constants of a load that its answers use.
struct LoadContext {
    let settings: LoadSettings
    /// The protocol to which the request asks the server to switch; nil for nearly all loads.
    let upgrade: (any Upgrade)?
    /// When the load began, if its metrics are wanted.
    let startedAt: LoopInstant?
    /// Whether the delegate lets credentials of the storage be used (rule UC-43).
    let usesCredentialStorage: Bool
}

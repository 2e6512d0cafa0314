public import FoundationNetworking

// Foundation on Linux numbers the cache policies in an order of its own. Code that comes from Apple's
// platforms, and the numbers in Apple's documentation (the table of rule UC-56), use Apple's numbers: these
// two members stand in for Foundation's wherever Rondo is imported.
extension NSURLRequest.CachePolicy {
    /// The policy that has this number in Apple's documentation; nil if none has.
    @_disfavoredOverload  // where FoundationNetworking is imported as well, Foundation's numbers hold
    public init?(rawValue: UInt) {
        guard let policy = Self.byAppleValue[rawValue] else { return nil }
        self = policy
    }

    /// The number of this policy in Apple's documentation.
    @_disfavoredOverload
    public var rawValue: UInt {
        switch self {
        case .useProtocolCachePolicy: 0
        case .reloadIgnoringLocalCacheData: 1
        case .returnCacheDataElseLoad: 2
        case .returnCacheDataDontLoad: 3
        case .reloadIgnoringLocalAndRemoteCacheData: 4
        case .reloadRevalidatingCacheData: 5
        @unknown default: 0
        }
    }

    private static let byAppleValue: [UInt: NSURLRequest.CachePolicy] = [
        0: .useProtocolCachePolicy, 1: .reloadIgnoringLocalCacheData, 2: .returnCacheDataElseLoad,
        3: .returnCacheDataDontLoad, 4: .reloadIgnoringLocalAndRemoteCacheData,
        5: .reloadRevalidatingCacheData,
    ]
}

/// The callbacks of a `CFSocket`. The first three exclude each other; `connectCallBack` and `writeCallBack`
/// may be added (rule CS-1).
public struct CFSocketCallBackType: OptionSet, Hashable, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// The socket has bytes, its end, or a connection to accept; nothing is read.
    public static let readCallBack = CFSocketCallBackType(rawValue: 1)
    /// A connection was accepted: `data` points to its handle, a `CFSocketNativeHandle`, which the callback
    /// must close.
    public static let acceptCallBack = CFSocketCallBackType(rawValue: 2)
    /// Bytes were read: `data` is a `CFData`, empty at the end of a connection.
    public static let dataCallBack = CFSocketCallBackType(rawValue: 3)
    /// An attempt to connect in the background has ended: `data` is nil, or points to its errno, an `Int32`.
    public static let connectCallBack = CFSocketCallBackType(rawValue: 4)
    /// The socket has room to write.
    public static let writeCallBack = CFSocketCallBackType(rawValue: 8)

    /// The reading callback that is set, if any. The first three types share two bits; `dataCallBack` has
    /// both.
    var reading: CFSocketCallBackType { CFSocketCallBackType(rawValue: rawValue & 3) }
}

/// The result of a call on a `CFSocket`.
public enum CFSocketError: Int, Sendable {
    case success = 0
    case error = -1
    case timeout = -2
}

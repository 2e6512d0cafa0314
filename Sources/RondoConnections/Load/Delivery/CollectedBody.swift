package import FoundationNetworking
package import RondoCore

/// Collects the body of a response for a client that gets all of it at once. A value, with a limit (rule
/// US-44).
package struct CollectedBody {
    package private(set) var data = Data()
    private let limit: Int
    private var announced: Int64 = -1

    /// See `URLConnection.maximumCollectedBytes`.
    static let maximumBytes = 1 << 30

    package init() { self.init(limit: Self.maximumBytes) }

    init(limit: Int) { self.limit = limit }

    /// Begins the body of `response`, and drops that of an earlier one.
    package mutating func begin(_ response: URLResponse) {
        data = Data()
        announced = response.expectedContentLength
    }

    /// - Returns: The failure if the piece is refused, because the body is longer than the limit, or was
    ///   announced to be; nil otherwise.
    package mutating func add(_ piece: Data) -> LoadFailure? {
        guard data.count + piece.count <= limit, announced <= Int64(limit) else {
            data = Data()
            return .collectedTooMuch(limit)
        }
        if data.isEmpty { data = piece } else { data.append(piece) }
        return nil
    }
}

package import FoundationNetworking
package import RondoCore

/// The body of a response, for a client that gets all of it at once. A value; it has a limit (rule US-44).
package struct CollectedBody {
    package private(set) var data = Data()
    private let limit: Int
    private var announced: Int64 = -1

    package init(limit: Int = URLConnection.maximumCollectedBytes) { self.limit = limit }

    /// The body of `response` begins; another one's is forgotten.
    package mutating func begin(_ response: URLResponse) {
        data = Data()
        announced = response.expectedContentLength
    }

    /// - Throws: It is longer than the limit, or is announced to become so: then its first piece is refused.
    package mutating func add(_ piece: Data) throws(LoadFailure) {
        guard data.count + piece.count <= limit, announced <= Int64(limit) else {
            data = Data()
            throw .collectedTooMuch(limit)
        }
        if data.isEmpty { data = piece } else { data.append(piece) }
    }
}

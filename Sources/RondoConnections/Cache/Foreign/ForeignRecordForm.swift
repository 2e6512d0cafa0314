internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The form in which Rondo's record of a response is stored in the user info of a `ForeignStore`'s response.
struct ForeignRecordForm: Codable {
    let status: Int
    let fields: [[String]]
    let requestedAt: Double
    let receivedAt: Double
    let selecting: [String: String?]
    let variants: String?

    init(_ entry: CacheEntry, variants: String?) {
        self.variants = variants
        status = entry.status
        fields = entry.fields.map { [$0.name, $0.value] }
        requestedAt = entry.requestedAt.timeIntervalSince1970
        receivedAt = entry.receivedAt.timeIntervalSince1970
        selecting = entry.selecting
    }

    var entry: CacheEntry {
        CacheEntry(
            status: status,
            fields: HeaderFields(fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }),
            requestedAt: Date(timeIntervalSince1970: requestedAt),
            receivedAt: Date(timeIntervalSince1970: receivedAt), selecting: selecting)
    }
}

internal import RondoCore
internal import RondoHTTP

/// The fields of a response as `HTTPURLResponse` is given them: one of each name.
enum ResponseFields {
    /// The fields of `head` by the name that came first; which case that has counts for `X-` alone, all others
    /// Foundation spells in its own way.
    static func dictionary(_ head: ResponseHead) -> [String: String] {
        var fields: [String: String] = [:]
        var spellings: [String: String] = [:]
        fields.reserveCapacity(head.fields.count)
        spellings.reserveCapacity(head.fields.count)
        head.fields.forEachField { name, value in
            let name = String(decoding: name, as: UTF8.self)
            let value = HeaderFields.text(value)
            let key = name.lowercased()
            guard let first = spellings[key] else {
                spellings[key] = name
                fields[name] = value
                return
            }
            // Of fields that hold one value the first counts; others are one list (RFC 9110 §5.3).
            if HeaderFields.isSingular(key), !joined.contains(key) { return }
            fields[first, default: ""] += ", " + value
        }
        return fields
    }

    /// Fields that hold one value and are joined all the same: Foundation's reader of cookies takes them apart again,
    /// and of media types the last one counts (`MediaTypeField`).
    private static let joined: Set<String> = ["set-cookie", "set-cookie2", "content-type"]
}

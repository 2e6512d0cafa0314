internal import RondoCore
internal import RondoHTTP

/// Converts the fields of a response to the form that `HTTPURLResponse` takes: one field for each name.
enum ResponseFields {
    /// The fields of `head`, each under the spelling of its name that came first. Only the spelling of `X-`
    /// fields is visible: Foundation normalises the others.
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
            // For a field that holds one value the first one counts; the values of others form one list (RFC
            // 9110 §5.3).
            if HeaderFields.isSingular(key), !joined.contains(key) { return }
            fields[first, default: ""] += ", " + value
        }
        return fields
    }

    /// Fields that hold one value and are joined all the same: Foundation's cookie parser splits them again,
    /// and of several media types the last one counts (`MediaTypeField`).
    private static let joined: Set<String> = ["set-cookie", "set-cookie2", "content-type"]
}

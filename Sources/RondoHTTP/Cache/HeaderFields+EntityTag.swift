extension HeaderFields {
    /// Whether an entity tag identifies the bytes of the content. A weak one (`W/"…"`) is the same for others that mean the
    /// same (RFC 9110 §8.8.1).
    package var hasStrongTag: Bool {
        var isStrong = has("ETag")
        forEachValue(of: "ETag") { tag in
            if tag.starts(with: "W/".utf8) || tag.starts(with: "w/".utf8) { isStrong = false }
        }
        return isStrong
    }
}

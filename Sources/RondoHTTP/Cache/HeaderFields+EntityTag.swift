extension HeaderFields {
    /// Whether an entity tag identifies the bytes of the content. A weak one (`W/"…"`) is the same for others
    /// that mean the same (RFC 9110 §8.8.1).
    package var hasStrongTag: Bool {
        var isStrong = has("ETag")
        forEachValue(of: "ETag") { tag in
            if tag.starts(with: "W/".utf8) || tag.starts(with: "w/".utf8) { isStrong = false }
        }
        return isStrong
    }

    /// Whether there is an entity tag that would be sent back in the bytes in which it came. What is kept and
    /// sent is text, so one that is not UTF-8 would come back in other bytes, and would never match (RFC 9110
    /// §8.8.3 allows any).
    package var hasReturnableTag: Bool {
        var isReturnable = has("ETag")
        forEachValue(of: "ETag") { tag in
            if !Self.isUTF8(tag) { isReturnable = false }
        }
        return isReturnable
    }
}

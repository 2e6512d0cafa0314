/// The head of a response: its status line and its header section.
///
/// A class, because it is passed on a dozen times on its way to the delegate and never changes.
package final class ResponseHead: Sendable {
    /// The version that the server supports, not the one in which this response was framed.
    package let version: HTTPVersion
    /// 100 to 999. A code above 599 has no meaning and counts as a 5xx (RFC 9110 §15).
    package let status: Int
    /// For people only, often empty.
    package let reason: String
    package let fields: HeaderFields

    package init(
        version: HTTPVersion = .http11, status: Int, reason: String = "",
        fields: HeaderFields = HeaderFields()
    ) {
        self.version = version
        self.status = status
        self.reason = reason
        self.fields = fields
    }

    /// Whether this is an interim response (1xx), which precedes the final one. 101 is not one: it is the
    /// last HTTP response on its connection.
    package var isInformational: Bool { status < 200 && status != 101 }
}

extension ResponseHead: Equatable {
    package static func == (left: ResponseHead, right: ResponseHead) -> Bool {
        left === right
            || left.version == right.version && left.status == right.status && left.reason == right.reason
                && left.fields == right.fields
    }
}

/// The protocol version of a message, `HTTP/major.minor`.
package struct HTTPVersion: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var major: UInt8
    package var minor: UInt8

    package init(major: UInt8, minor: UInt8) {
        self.major = major
        self.minor = minor
    }

    package static let http10 = HTTPVersion(major: 1, minor: 0)
    package static let http11 = HTTPVersion(major: 1, minor: 1)

    package static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    package var description: String {
        switch self {
        case .http11: "HTTP/1.1"
        case .http10: "HTTP/1.0"
        default: "HTTP/\(major).\(minor)"
        }
    }
}

package import struct Foundation.Date

/// A cookie in the form in which a store keeps it (RFC 6265bis §5.7).
package struct Cookie: Sendable, Equatable {
    package var name: String
    package var value: String
    /// A canonical host name: in lower case, without a leading dot.
    package var domain: String
    /// Whether the cookie is sent only to this host, and to no host below it.
    package var isHostOnly: Bool
    package var path: String
    /// Nil: the cookie lasts until the program ends.
    package var expires: Date?
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    /// When the cookie was first set; a new value does not change this (§5.7, step 20.3).
    package var createdAt: Date
    /// When this value was set.
    package var updatedAt: Date

    package init(
        name: String, value: String, domain: String, isHostOnly: Bool, path: String, expires: Date? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, createdAt: Date, updatedAt: Date? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.createdAt = createdAt
        self.updatedAt = updatedAt ?? createdAt
    }

    /// The identity of a cookie: of two cookies with the same key the later replaces the earlier (rule
    /// UC-57).
    package struct Key: Hashable, Sendable {
        package var domain: String
        package var isHostOnly: Bool
        package var path: String
        package var name: String

        package init(domain: String, isHostOnly: Bool, path: String, name: String) {
            (self.domain, self.isHostOnly, self.path, self.name) = (domain, isHostOnly, path, name)
        }
    }

    package var key: Key { Key(domain: domain, isHostOnly: isHostOnly, path: path, name: name) }

    package func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The destination of a request, as far as it matters to cookies.
package struct CookieOrigin: Sendable, Equatable {
    /// Canonical: in lower case, without the brackets of an IPv6 address.
    package var host: String
    /// The path as it is sent, without query.
    package var path: String
    /// Whether the request uses TLS.
    package var isSecure: Bool

    package init(host: String, path: String, isSecure: Bool) {
        let isLower = host.utf8.allSatisfy { $0 < 0x80 && !(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0) }
        var host = isLower ? host : host.lowercased()
        if host.utf8.first == UInt8(ascii: "["), host.utf8.last == UInt8(ascii: "]") {
            host = String(host.dropFirst().dropLast())
        }
        self.host = host
        self.path = path.utf8.first == UInt8(ascii: "/") ? path : "/"
        self.isSecure = isSecure
    }
}

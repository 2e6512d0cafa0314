internal import RondoCore
internal import RondoHTTP

/// The Set-Cookie fields of one response, not parsed yet.
struct ReceivedCookies: Sendable {
    private let fields: [String]
    let origin: CookieOrigin
    /// The date of their arrival.
    let date: Date

    init(_ fields: [String], from origin: CookieOrigin, at date: Date) {
        (self.fields, self.origin, self.date) = (fields, origin, date)
    }

    var count: Int { fields.count }

    /// Whether they can be processed without loading the list of public suffixes first, which takes 1.5 ms,
    /// or more from a slow disk.
    var isQuick: Bool { PublicSuffixes.isLoaded || !fields.contains(where: Self.mayNameDomain) }

    private static func mayNameDomain(_ field: String) -> Bool {
        let name = Array("domain".utf8)
        return field.utf8.split(separator: UInt8(ascii: ";")).dropFirst().contains { attribute in
            let start = attribute.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            return start.count >= name.count && zip(start, name).allSatisfy { $0 | 0x20 == $1 }
        }
    }

    /// The cookies that may be kept, in their order.
    func cookies() -> [Cookie] {
        fields.compactMap { text in
            guard let field = SetCookie(text),
                let cookie = CookieRules.cookie(field, from: origin, now: date)
            else { return nil }
            if !cookie.isHostOnly, !PublicSuffixes.hasList { Log.missingSuffixList }
            return cookie
        }
    }
}

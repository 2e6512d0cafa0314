import RondoHTTP

/// The part of a representation that a request asks for (RFC 9110, section 14).
enum RangeChoice: Equatable {
    /// The whole: the request has no Range field, or one that a server should ignore.
    case whole
    /// These parts: at least one, none of them empty, in the order of the request.
    case parts([Range<Int>])
    /// The representation has none of the requested bytes.
    case unsatisfiable

    /// - Parameters:
    ///   - field: The value of the Range field; nil if there is none.
    ///   - size: The size of the representation in bytes.
    init(field: String?, size: Int) {
        guard let field, let specifiers = Self.specifiers(field) else {
            self = .whole
            return
        }
        let parts = specifiers.compactMap { $0.range(in: size) }
        if parts.isEmpty {
            // The last bytes of an empty file are empty, which Content-Range cannot express.
            let asksForEnd = specifiers.contains {
                if case .last(let count) = $0 { count > 0 } else { false }
            }
            self = size == 0 && asksForEnd ? .whole : .unsatisfiable
        } else if parts.count > ServerLimits.ranges
            || parts.count > 1 && Self.sum(parts) > min(size, ServerLimits.size)
        {
            // Many or overlapping parts are cheaper for both sides as a whole (section 14.2).
            self = .whole
        } else {
            self = .parts(parts)
        }
    }

    private static func sum(_ parts: [Range<Int>]) -> Int {
        var sum = 0
        for part in parts {
            let (next, overflows) = sum.addingReportingOverflow(part.count)
            if overflows { return .max }
            sum = next
        }
        return sum
    }

    private enum Specifier {
        case from(Int, through: Int?)
        case last(Int)

        func range(in size: Int) -> Range<Int>? {
            switch self {
            case .from(let first, let last):
                guard first < size else { return nil }
                return first..<(min(last ?? size - 1, size - 1) + 1)
            case .last(let count):
                return count > 0 && size > 0 ? max(0, size - count)..<size : nil
            }
        }
    }

    /// Nil if `field` does not use the unit of bytes or is invalid: then it is ignored.
    private static func specifiers(_ field: String) -> [Specifier]? {
        let unit = "bytes="
        guard field.prefix(unit.count).lowercased() == unit else { return nil }
        var specifiers: [Specifier] = []
        for element in field.dropFirst(unit.count).split(separator: ",") {
            let text = element.trimmingPrefix { $0 == " " || $0 == "\t" }
            let trimmed = text.prefix { $0 != " " && $0 != "\t" }
            guard text.dropFirst(trimmed.count).allSatisfy({ $0 == " " || $0 == "\t" }) else { return nil }
            if trimmed.isEmpty { continue }
            guard let specifier = specifier(trimmed) else { return nil }
            specifiers.append(specifier)
        }
        return specifiers.isEmpty ? nil : specifiers
    }

    private static func specifier(_ text: Substring) -> Specifier? {
        guard let hyphen = text.firstIndex(of: "-") else { return nil }
        let (before, behind) = (text[..<hyphen], text[text.index(after: hyphen)...])
        if before.isEmpty { return number(behind).map { .last($0) } }
        guard let first = number(before) else { return nil }
        if behind.isEmpty { return .from(first, through: nil) }
        guard let last = number(behind), last >= first else { return nil }
        return .from(first, through: last)
    }

    /// A number of digits only. A number that is too large becomes the largest Int.
    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy(Grammar.isDigit) else { return nil }
        return Int(text) ?? .max
    }
}

import RondoHTTP

/// Which part of a representation is asked for (RFC 9110, section 14).
enum RangeChoice: Equatable {
    /// All of it: nothing else is asked for, or in a way that a server should not follow.
    case whole
    /// These parts, at least one, none of which is empty, in the order in which they were asked for.
    case parts([Range<Int>])
    /// None of the bytes asked for is there.
    case unsatisfiable

    /// - Parameters:
    ///   - field: The value of the field Range; nil if there is none.
    ///   - size: How many bytes the representation has.
    init(field: String?, size: Int) {
        guard let field, let specifiers = Self.specifiers(field) else {
            self = .whole
            return
        }
        let parts = specifiers.compactMap { $0.range(in: size) }
        if parts.isEmpty {
            // The last bytes of nothing are nothing, which no Content-Range can say.
            let asksForEnd = specifiers.contains {
                if case .last(let count) = $0 { count > 0 } else { false }
            }
            self = size == 0 && asksForEnd ? .whole : .unsatisfiable
        } else if parts.count > ServerLimits.ranges
            || parts.count > 1 && Self.sum(parts) > min(size, ServerLimits.size)
        {
            // Many, or overlapping ones: cheaper for both sides as a whole (section 14.2).
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

    /// Nil where `field` is none of bytes, or broken: then it does not count.
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

    /// Digits alone; too large a number is the largest there is.
    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy(Grammar.isDigit) else { return nil }
        return Int(text) ?? .max
    }
}

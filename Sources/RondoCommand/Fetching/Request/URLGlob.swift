/// A URL pattern that stands for several URLs: `{a,b}`, `[1-9]`, `[001-100:10]`, `[a-z]`. A value that counts
/// through them.
struct URLGlob: Equatable, Sendable {
    /// The most URLs that a pattern may stand for.
    static let maximumCount = 1_000_000

    private enum Piece: Equatable, Sendable {
        case text(String)
        case choices([String])
        /// Numbers with at least `digits` digits.
        case numbers(first: Int, step: Int, count: Int, digits: Int)
        case letters(first: UInt8, step: Int, count: Int)

        var count: Int {
            switch self {
            case .text: 1
            case .choices(let choices): choices.count
            case .numbers(_, _, let count, _), .letters(_, _, let count): count
            }
        }

        func text(at index: Int) -> String {
            switch self {
            case .text(let text): return text
            case .choices(let choices): return choices[index]
            case .numbers(let first, let step, _, let digits):
                let number = String(first + index * step)
                return String(repeating: "0", count: max(0, digits - number.count)) + number
            case .letters(let first, let step, _):
                return String(Unicode.Scalar(UInt8(Int(first) + index * step)))
            }
        }

        var isGlob: Bool { if case .text = self { false } else { true } }
    }

    private var pieces: [Piece] = []
    let count: Int

    /// - Throws: `FetchFailure` if the pattern is invalid.
    init(_ pattern: String) throws(FetchFailure) {
        var rest = pattern[...]
        var text = ""
        while let character = rest.popFirst() {
            switch character {
            case "\\" where rest.first.map { "{}[]".contains($0) } ?? false: text.append(rest.removeFirst())
            case "{": pieces += Self.flush(&text) + [try Self.choices(&rest, in: pattern)]
            case "[" where Self.isAddress(rest): text.append(character)
            case "[": pieces += Self.flush(&text) + [try Self.range(&rest, in: pattern)]
            case "}": throw Self.failure("unmatched close brace", pattern)
            case "]" where !text.contains("["): throw Self.failure("unmatched close bracket", pattern)
            default: text.append(character)
            }
        }
        pieces += Self.flush(&text)
        var count = 1
        for piece in pieces {
            let (product, overflow) = count.multipliedReportingOverflow(by: piece.count)
            guard !overflow, product <= Self.maximumCount else {
                throw Self.failure("too many URLs", pattern)
            }
            count = product
        }
        self.count = count
    }

    /// Makes a pattern that stands for this URL only.
    init(literal text: String) {
        pieces = [.text(text)]
        count = 1
    }

    /// The URL at this index, with the last glob counting fastest, and the texts that its globs matched.
    func url(at index: Int) -> (text: String, matches: [String]) {
        var rest = index
        var texts: [String] = []
        var matches: [String] = []
        for piece in pieces.reversed() {
            let text = piece.text(at: rest % piece.count)
            rest /= piece.count
            texts.append(text)
            if piece.isGlob { matches.append(text) }
        }
        return (texts.reversed().joined(), matches.reversed())
    }

    /// `pattern` with `#1`, `#2` … replaced by the texts that the globs matched; a number without a glob
    /// remains.
    static func name(_ pattern: String, _ matches: [String]) -> String {
        var name = ""
        var rest = pattern[...]
        while let character = rest.popFirst() {
            let digits = character == "#" ? rest.prefix { $0.isASCII && $0.isNumber } : ""
            if let number = Int(digits), (1...max(matches.count, 1)).contains(number), number <= matches.count
            {
                name += matches[number - 1]
                rest = rest.dropFirst(digits.count)
            } else {
                name.append(character)
            }
        }
        return name
    }

    // MARK: - Reading

    private static func flush(_ text: inout String) -> [Piece] {
        defer { text = "" }
        return text.isEmpty ? [] : [.text(text)]
    }

    private static func choices(_ rest: inout Substring, in pattern: String) throws(FetchFailure) -> Piece {
        var choices = [""]
        while let character = rest.popFirst() {
            switch character {
            case "}":
                if choices == [""] { throw failure("empty string within braces", pattern) }
                return .choices(choices)
            case ",": choices.append("")
            case "{", "[": throw failure("nested brace", pattern)
            case "\\": if let next = rest.popFirst() { choices[choices.count - 1].append(next) }
            default: choices[choices.count - 1].append(character)
            }
        }
        throw failure("unmatched brace", pattern)
    }

    private static func range(_ rest: inout Substring, in pattern: String) throws(FetchFailure) -> Piece {
        guard let end = rest.firstIndex(of: "]") else { throw failure("bad range", pattern) }
        let text = rest[..<end]
        rest = rest[rest.index(after: end)...]
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let ends = parts[0].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2, let step = parts.count > 1 ? Int(parts[1]) : 1, step > 0 else {
            throw failure("bad range", pattern)
        }
        let (first, last) = (ends[0], ends[1])
        if let low = Int(first), let high = Int(last), low >= 0, high >= low, high < Int.max / 2 {
            // Leading zeros give the number of digits.
            let digits = first.first == "0" && first.count > 1 ? first.count : 0
            return .numbers(first: low, step: step, count: (high - low) / step + 1, digits: digits)
        }
        guard first.utf8.count == 1, last.utf8.count == 1, let low = first.utf8.first,
            let high = last.utf8.first,
            isLetter(low), isLetter(high), high >= low, step <= Int(high - low) || high == low
        else { throw failure("bad range", pattern) }
        return .letters(first: low, step: step, count: Int(high - low) / step + 1)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    /// True if the text in brackets is an IPv6 address.
    private static func isAddress(_ rest: Substring) -> Bool {
        let text = rest.prefix { $0 != "]" }
        return text.count < rest.count && text.contains(":") && !text.contains("-")
            && text.allSatisfy { $0.isHexDigit || ":.%".contains($0) || $0.isLetter }
    }

    private static func failure(_ reason: String, _ pattern: String) -> FetchFailure {
        FetchFailure(
            .badURL, "\(reason) in URL: \(pattern) (-g takes it as it stands)", status: .malformedURL)
    }
}

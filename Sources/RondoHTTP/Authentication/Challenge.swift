// The challenges of a server in WWW-Authenticate, and of a proxy in Proxy-Authenticate (RFC 9110 §11). Commas
// separate both the challenges and the parameters within one, so only the text after a name shows whether the
// name is a scheme:
//
//     Basic realm="a", Digest realm="b", nonce="c", Negotiate YWJj==, Newauth
//
// A name followed by "=" is a parameter of the preceding challenge; any other name begins a challenge.

/// One challenge: a scheme with its token or parameters.
package struct Challenge: Sendable, Equatable {
    package struct Parameter: Sendable, Equatable {
        /// As the server spelled it; compared without regard to case.
        package var name: String
        /// The value without quotes and their backslashes, in the bytes that came: the answer of Digest has
        /// to repeat them, also if they are not UTF-8.
        package var bytes: [UInt8]
        /// The value as text.
        package var value: String { bytes.withUnsafeBufferPointer { HeaderFields.text($0) } }

        package init(name: String, bytes: [UInt8]) {
            self.name = name
            self.bytes = bytes
        }

        package init(name: String, value: String) { self.init(name: name, bytes: Array(value.utf8)) }
    }

    /// The most challenges of one response that are read. Each may lead to a prompt for a person; servers
    /// offer up to five.
    package static let maximumCount = 16

    /// As the server spelled it; compared without regard to case.
    package var scheme: String
    /// The value that some schemes, such as Negotiate, send instead of parameters (RFC 9110 §11.2,
    /// `token68`).
    package var token: String?
    package var parameters: [Parameter]

    package init(scheme: String, token: String? = nil, parameters: [Parameter] = []) {
        self.scheme = scheme
        self.token = token
        self.parameters = parameters
    }

    /// The value of the first parameter called `name`, compared without regard to case.
    package subscript(name: String) -> String? { parameter(name)?.value }

    /// The bytes of that value.
    func bytes(of name: String) -> [UInt8]? { parameter(name)?.bytes }

    private func parameter(_ name: String) -> Parameter? {
        parameters.first { Grammar.equalIgnoringCase($0.name.utf8, name.utf8) }
    }

    /// The part of the server to which the credentials apply (RFC 9110 §11.5); empty if the challenge names
    /// none.
    package var realm: String { self["realm"] ?? "" }

    /// The challenges in the values of one field that may be repeated, in order; at most `maximumCount`.
    ///
    /// Unreadable parts are skipped: a server that sends one challenge wrong may have sent another right.
    package static func challenges(in values: [[UInt8]]) -> [Challenge] {
        var challenges: [Challenge] = []
        for value in values {
            var parser = ChallengeParser(value)
            while challenges.count < maximumCount, let next = parser.next() { challenges.append(next) }
        }
        return challenges
    }

    /// The challenges in the fields called `name`.
    package static func challenges(in fields: HeaderFields, called name: StaticString) -> [Challenge] {
        var values: [[UInt8]] = []
        fields.forEachValue(of: name) { values.append(Array($0)) }
        return challenges(in: values)
    }
}

/// The comma-separated `name=value` pairs of Authentication-Info and its kin (RFC 7615).
func authenticationParameters(in value: [UInt8]) -> [Challenge.Parameter] {
    var parser = ChallengeParser(value)
    return parser.parameters()
}

/// Reads one field value from front to back.
struct ChallengeParser {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The next challenge; nil at the end.
    mutating func next() -> Challenge? {
        while true {
            skipSeparators()
            guard position < bytes.count else { return nil }
            if let scheme = schemeHere() {
                var challenge = Challenge(scheme: scheme)
                challenge.token = tokenHere()
                // There should be no parameters after a token; but a parameter without a value looks like a
                // token: `realm=, nonce="a"`.
                challenge.parameters = parameters()
                return challenge
            }
            // A parameter without a scheme, or text that is not a name.
            skipToComma()
        }
    }

    /// The parameters from here to the next scheme.
    mutating func parameters() -> [Challenge.Parameter] {
        var parameters: [Challenge.Parameter] = []
        while true {
            skipSeparators()
            guard let parameter = parameterHere() else { return parameters }
            parameters.append(parameter)
        }
    }

    // MARK: Parts

    /// Consumes a name that is not a parameter's.
    private mutating func schemeHere() -> String? {
        let end = endOfName(from: position)
        guard end > position, byte(skippingWhitespace(from: end)) != Self.equals else { return nil }
        // A scheme ends only at whitespace, a comma or the end, unlike `Basic"x"`.
        guard end == bytes.count || Grammar.isWhitespace(bytes[end]) || bytes[end] == Grammar.comma else {
            return nil
        }
        defer { position = end }
        return text(position..<end)
    }

    /// Consumes a `token68`, after which only a comma or the end may come. `a=` is a token, `a=b` a
    /// parameter.
    private mutating func tokenHere() -> String? {
        let start = skippingWhitespace(from: position)
        var end = start
        while let byte = byte(end), Self.isToken68(byte) { end += 1 }
        guard end > start else { return nil }
        while byte(end) == Self.equals { end += 1 }
        let after = skippingWhitespace(from: end)
        guard after == bytes.count || bytes[after] == Grammar.comma else { return nil }
        defer { position = after }
        return text(start..<end)
    }

    /// Consumes `name = value`.
    private mutating func parameterHere() -> Challenge.Parameter? {
        let end = endOfName(from: position)
        let equals = skippingWhitespace(from: end)
        guard end > position, byte(equals) == Self.equals else { return nil }
        let name = text(position..<end)
        position = skippingWhitespace(from: equals + 1)
        if byte(position) == Self.quote { return Challenge.Parameter(name: name, bytes: quotedString()) }
        // Unquoted values sometimes contain spaces: `realm=My Site`. They end at the comma, as in Chromium.
        let start = position
        skipToComma()
        var last = position
        while last > start, Grammar.isWhitespace(bytes[last - 1]) { last -= 1 }
        return Challenge.Parameter(name: name, bytes: Array(bytes[start..<last]))
    }

    /// Consumes a quoted string, up to the closing quote or, if there is none, the end; and any text before
    /// the next comma.
    private mutating func quotedString() -> [UInt8] {
        var value: [UInt8] = []
        position += 1
        while let byte = byte(position), byte != Self.quote {
            if byte == Self.backslash, position + 1 < bytes.count { position += 1 }
            value.append(bytes[position])
            position += 1
        }
        skipToComma()
        return value
    }

    // MARK: Bytes

    private static let equals = UInt8(ascii: "=")
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"),
            UInt8(ascii: "/"):
            true
        default: Grammar.isDigit(byte) || Grammar.lowercased(byte) &- 0x61 < 26
        }
    }

    private func byte(_ index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func endOfName(from start: Int) -> Int {
        bytes[start...].firstIndex { !Grammar.isToken($0) } ?? bytes.count
    }

    private func skippingWhitespace(from start: Int) -> Int {
        var index = start
        while index < bytes.count, Grammar.isWhitespace(bytes[index]) { index += 1 }
        return index
    }

    private mutating func skipSeparators() {
        while let byte = byte(position), byte == Grammar.comma || Grammar.isWhitespace(byte) { position += 1 }
    }

    private mutating func skipToComma() {
        position = bytes[position...].firstIndex(of: Grammar.comma) ?? bytes.count
    }
}

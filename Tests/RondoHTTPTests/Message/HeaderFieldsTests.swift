import RondoHTTP
import Testing

@Suite struct HeaderFieldsTests {
    private let fields = HeaderFields([
        ("Accept", "a"), ("Set-Cookie", "x=1, y"), ("accept", "b, c"), ("set-cookie", "z"), ("Empty", ""),
    ])

    @Test func `names are found whatever their case, values in order`() {
        #expect(fields["ACCEPT"] == "a, b, c")
        #expect(fields.values(for: "Accept") == ["a", "b, c"])
        #expect(fields["empty"] == "")
        #expect(fields["accep"] == nil)
        #expect(fields.values(for: "none").isEmpty)
        #expect(fields.contains("EMPTY") && !fields.contains("empt"))
        #expect(fields.count == 5)
    }

    @Test func `a field that is no list is not joined`() {
        #expect(fields["Set-Cookie"] == "x=1, y")
        #expect(HeaderFields([("Location", "/a"), ("location", "/b")])["Location"] == "/a")
    }

    @Test func `UC-34 several fields of one value are one, and others none`() {
        let fields = HeaderFields([("A", "1"), ("B", "2"), ("a", "1"), ("b", "3"), ("C", "4")])
        #expect(fields.agreed("A") == "1")
        #expect(fields.agreed("B") == nil)
        #expect(fields.agreed("C") == "4")
        #expect(fields.agreed("D") == nil)
    }

    @Test func `fields are iterated in order, as they were spelled`() {
        #expect(fields.map(\.name) == ["Accept", "Set-Cookie", "accept", "set-cookie", "Empty"])
        #expect(fields.map(\.value) == ["a", "x=1, y", "b, c", "z", ""])
    }

    @Test func `fields that are handed on are known as such, until they are changed`() {
        var copy = fields
        #expect(copy.areCopied(from: fields))
        copy.append(name: "More", value: "1")
        #expect(!copy.areCopied(from: fields))
        copy = fields
        copy.remove("Accept")
        #expect(!copy.areCopied(from: fields))
        #expect(!HeaderFields(fields.map { ($0.name, $0.value) }).areCopied(from: fields))
        #expect(HeaderFields().areCopied(from: HeaderFields()))
    }

    /// Every way to change fields, of which each changes those that are here.
    private static let changes: [@Sendable (inout HeaderFields) -> Void] = [
        { $0.append(name: "More", value: "1") }, { $0.append(HeaderFields([("More", "1")])) },
        { $0.set(name: "Empty", value: "no more") }, { $0.set(name: "More", value: "1") },
        { $0.remove("Accept") }, { $0.append($0) },
    ]

    @Test(arguments: changes.indices)
    func `a copy sees nothing of a change of the original`(index: Int) {
        let before = fields.description
        var (copy, changed) = (fields, HeaderFields())
        Self.changes[index](&copy)
        #expect(fields.description == before)
        #expect(copy.description != before)
        // An iterator has one as well.
        var seen = 0
        for _ in copy {
            if seen == 0 { Self.changes[index](&copy) }
            seen += 1
        }
        #expect(seen == HeaderFields(Self.changed(fields, index)).count)
        Self.changes[index](&changed)
        #expect(HeaderFields().isEmpty)
    }

    private static func changed(_ fields: HeaderFields, _ index: Int) -> [(String, String)] {
        var fields = fields
        changes[index](&fields)
        return fields.map { ($0.name, $0.value) }
    }

    @Test func `fields that were appended to themselves are there twice`() {
        var twice = fields
        twice.append(twice)
        #expect(twice.map(\.value) == fields.map(\.value) + fields.map(\.value))
    }

    @Test func `values are hashed one by one, and so is their number`() {
        func hash(_ pairs: [(String, String)]) -> Int {
            var hasher = Hasher()
            HeaderFields(pairs).hashValues(of: "A", into: &hasher)
            HeaderFields(pairs).hashValues(of: "B", into: &hasher)
            return hasher.finalize()
        }
        #expect(hash([("A", "x"), ("C", "y")]) == hash([("a", "x"), ("c", "z")]))
        let others = [
            [("A", "xy")], [("A", "x"), ("A", "y")], [("A", "xy"), ("A", "")], [("A", "x"), ("B", "y")],
            [("B", "xy")], [],
        ]
        #expect(Set(others.map(hash)).count == others.count)
    }

    @Test func `set replaces the first and removes the rest`() {
        var changed = fields
        changed.set(name: "ACCEPT", value: "d")
        changed.set(name: "New", value: "e")
        #expect(
            changed
                == HeaderFields([
                    ("Accept", "d"), ("Set-Cookie", "x=1, y"), ("Set-Cookie", "z"), ("Empty", ""),
                    ("New", "e"),
                ]))
    }

    @Test func `remove takes every field of that name`() {
        var changed = fields
        changed.remove("SET-COOKIE")
        changed.remove("none")
        #expect(changed == HeaderFields([("accept", "a"), ("accept", "b, c"), ("empty", "")]))
    }

    // Names are looked for by a mark first, which must never say that one is absent that is there.
    @Test func `a name is found however it came, and not when it is gone`() {
        for (letter, count) in ["a", "B", "z", "-", "7"].flatMap({ letter in (0..<40).map { (letter, $0) } })
        {
            let name = letter + String(repeating: "x", count: count)
            let (lower, upper) = (name.lowercased(), name.uppercased())
            var fields = HeaderFields([("Host", "h"), (name, "1")])
            #expect(fields.contains(lower) && fields.contains(upper) && fields[upper] == "1")
            #expect(fields.first(lower) == "1" && fields.values(for: upper) == ["1"])
            fields.remove(upper)
            #expect(!fields.contains(name) && fields[name] == nil && fields.values(for: name) == [])
            fields.set(name: lower, value: "2")
            fields.set(name: upper, value: "3")
            var all = HeaderFields([("Accept", "*/*")])
            all.append(fields)
            #expect(all.values(for: name) == ["3"] && all.count == 3)
        }
        var fields = HeaderFields([("", "1")])
        fields.set(name: "", value: "2")
        #expect(fields.contains("") && fields.count == 1)
    }

    @Test func `equality knows the case of values and the order of fields`() {
        #expect(HeaderFields([("a", "b")]) != HeaderFields([("a", "B")]))
        #expect(HeaderFields([("a", "1"), ("b", "2")]) != HeaderFields([("b", "2"), ("a", "1")]))
        #expect(HeaderFields([("a", "1")]) != HeaderFields([("a", "1"), ("a", "1")]))
    }

    @Test func `elements of lists are found whatever their case and spacing`() {
        let connection = HeaderFields([("Connection", "keep-alive , "), ("connection", "\tUpgrade")])
        #expect(connection.contains("Connection", token: "upgrade"))
        #expect(connection.contains("Connection", token: "Keep-Alive"))
        #expect(!connection.contains("Connection", token: "keep"))
        #expect(!connection.contains("Connection", token: "close"))
    }
}

@Suite struct GrammarTests {
    @Test func `RFC 9110 5.6.2 a token is made of these bytes and no others`() {
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        let token = Set("!#$%&'*+-.^_`|~0123456789\(letters)".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect(Grammar.isToken(byte) == token.contains(byte))
        }
    }

    @Test func `digits, hexadecimal digits and case are those of ASCII`() {
        for byte in UInt8.min...UInt8.max {
            let character = Character(Unicode.Scalar(byte))
            #expect(Grammar.isDigit(byte) == ("0"..."9").contains(character))
            let value = character.isASCII ? character.hexDigitValue : nil
            #expect(Grammar.hexadecimalValue(byte) == value.map(UInt8.init))
            let lower = character.isASCII ? character.lowercased().utf8.first : byte
            #expect(Grammar.lowercased(byte) == lower)
        }
    }

    @Test func `an excerpt is short and fit for a terminal`() {
        #expect(Grammar.excerpt(Array("a\u{1B}[2Jé".utf8)) == #"a\x1B[2J\xC3\xA9"#)
        #expect(Grammar.excerpt(Array(repeating: 0x61, count: 40)) == String(repeating: "a", count: 40))
        #expect(Grammar.excerpt(Array(repeating: 0x61, count: 41)) == String(repeating: "a", count: 40) + "…")
    }
}

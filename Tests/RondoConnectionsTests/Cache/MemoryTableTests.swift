import Rondo
import RondoHTTP
import RondoProbeSupport
import Testing

@testable import RondoConnections

/// The responses in memory: which stay and which go.
@Suite struct MemoryTableTests {
    private static let cost = response("a", "").cost

    private static func response(
        _ name: String, _ text: String, selecting: [String: String?] = [:]
    ) -> StoredResponse {
        var entry = CacheEntry(status: 200, fields: HeaderFields(), requestedAt: Date(), receivedAt: Date())
        entry.selecting = selecting
        return StoredResponse(name, entry, content: Data(text.utf8), bodyLength: nil, date: Date())
    }

    private func texts(_ responses: [StoredResponse]) -> [String] {
        responses.map { String(decoding: $0.content, as: UTF8.self) }
    }

    @Test func `the memory table removes the least recently used response first`() {
        var table = MemoryTable(capacity: Self.cost * 3 + 20)
        for name in ["a", "b", "c"] { #expect(table.insert(Self.response(name, name)).isEmpty) }
        #expect(texts(table.find("a", StoredResponse.key("a"))) == ["a"])
        #expect(texts(table.insert(Self.response("d", "d"))) == ["b"])
        #expect(texts(table.insert(Self.response("e", "e"))) == ["c"])
        #expect(
            texts(["a", "b", "c", "d", "e"].flatMap { table.find($0, StoredResponse.key($0)) }) == [
                "a", "d", "e",
            ])
        #expect(table.count == 3 && table.cost == (Self.cost + 1) * 3)
    }

    @Test func `another response of the same URL takes the place of the old one`() {
        var table = MemoryTable(capacity: 1 << 20)
        _ = table.insert(Self.response("a", "old"))
        #expect(texts(table.insert(Self.response("a", "new"))) == ["old"])
        #expect(texts(table.find("a", StoredResponse.key("a"))) == ["new"])
        #expect(table.cost == Self.cost + 3)
    }

    @Test func `the memory table keeps up to eight variants of a URL, each replaced by its like`() {
        var table = MemoryTable(capacity: 1 << 20)
        for number in 0..<8 {
            _ = table.insert(Self.response("a", "\(number)", selecting: ["x": "\(number)"]))
        }
        #expect(table.find("a", StoredResponse.key("a")).count == 8)
        #expect(texts(table.insert(Self.response("a", "again", selecting: ["x": "3"]))) == ["3"])
        #expect(texts(table.insert(Self.response("a", "none", selecting: ["x": nil]))) == ["0"])
        #expect(table.find("a", StoredResponse.key("a")).count == MemoryTable.maximumVariants)
        // It varies by something else now; what was chosen by the old rule is of no use.
        #expect(table.insert(Self.response("a", "other", selecting: ["y": "1"])).count == 8)
        #expect(texts(table.insert(Self.response("a", "one"))) == ["other"])
        #expect(table.cost == Self.cost + 3)
    }

    @Test func `an entry that is larger than all the room displaces no other`() {
        var table = MemoryTable(capacity: Self.cost + 10)
        _ = table.insert(Self.response("a", "a"))
        #expect(table.insert(Self.response("b", String(repeating: "b", count: 100))).isEmpty)
        #expect(texts(table.find("a", StoredResponse.key("a"))) == ["a"])
        #expect(texts(table.insert(Self.response("a", String(repeating: "a", count: 100)))) == ["a"])
        #expect(table.count == 0 && table.cost == 0)
    }

    @Test func `a smaller capacity takes effect at once, and places are used again`() {
        var table = MemoryTable(capacity: 1 << 20)
        for number in 0..<100 { _ = table.insert(Self.response("\(number)", "x")) }
        table.capacity = (Self.cost + 3) * 10
        #expect(table.trim().count == 90)
        #expect(table.count == 10 && table.cost <= table.capacity)
        for number in 0..<1000 { _ = table.insert(Self.response("n\(number)", "x")) }
        #expect(table.all.count == table.count && table.cost <= table.capacity)
        #expect(table.removeAll().count == 10 || table.count == 0)
        #expect(table.find("n999", StoredResponse.key("n999")).isEmpty && table.cost == 0)
    }

    /// The same things are asked of a table and of a list that is searched from one end to the other.
    @Test(arguments: 0..<20) func `a memory table behaves as a plain list`(seed: Int) {
        var random = Random(seed: UInt64(seed))
        var table = MemoryTable(capacity: Self.cost * 8)
        var list: [StoredResponse] = []
        for step in 0..<500 {
            let name = "abcdefghijkl".randomElement(using: &random).map(String.init) ?? "a"
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                _ = table.remove(StoredResponse.key(name))
                list.removeAll { $0.name == name }
            case 1...4:
                let found = table.find(name, StoredResponse.key(name))
                #expect(
                    found.map(ObjectIdentifier.init)
                        == list.filter { $0.name == name }.map(ObjectIdentifier.init))
                if let found = found.first {
                    list.removeAll { $0 === found }
                    list.append(found)
                }
            default:
                let response = Self.response(name, String(repeating: "x", count: step % 50))
                _ = table.insert(response)
                list.removeAll { $0.name == name }
                list.append(response)
                while list.reduce(0, { $0 + $1.cost }) > table.capacity { list.removeFirst() }
            }
            #expect(table.cost == list.reduce(0) { $0 + $1.cost })
        }
        #expect(Set(table.all.map(ObjectIdentifier.init)) == Set(list.map(ObjectIdentifier.init)))
    }
}

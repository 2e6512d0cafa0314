import Rondo
import Testing

@testable import RondoCommand

struct WriteOutTests {
    private var failed: TransferRecord {
        var record = TransferRecord()
        record.failure = "why"
        record.exitStatus = 7
        record.head = ReceivedHead("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nX-A: 1\r\nX-A: 2\r\n\r\n")
        return record
    }

    @Test(arguments: [
        ("plain", "plain"), ("100%%", "100%"), ("a\\nb\\tc\\\\", "a\nb\tc\\\\"), ("5% %", "5% %"),
        ("%{http_code} %{content_type} %{errormsg}\\n", "000 text/x why\n"), ("%{time_total}", "0.000000"),
        ("%header{x-a}|%header{none}|%{exitcode}", "1||7"), ("%{onerror}bad", "bad"), ("%{json", "%{json"),
        ("%{nothing}x", "x"),
        ("%{header_json}", "{\"content-type\":[\"text/x\"],\n\"x-a\":[\"1\",\"2\"]\n}"),
    ])
    func `names and escapes of a format are replaced as by curl`(format: String, expected: String) throws {
        #expect(WriteOut(format).lines(for: failed).map(\.text).joined() == expected)
    }

    @Test func `header_json has each name once, with its values in order, whatever its case`() {
        var record = TransferRecord()
        record.head = ReceivedHead("HTTP/1.1 200 OK\r\nX-A: 1\r\nB: 2\r\nx-a: 3\r\nX-a:\r\n\r\n")
        let text = WriteOut("%{header_json}").lines(for: record).map(\.text).joined()
        #expect(text == "{\"x-a\":[\"1\",\"3\",\"\"],\n\"b\":[\"2\"]\n}")
    }

    @Test func `what follows onerror is for failures, and stderr and stdout take turns`() {
        #expect(WriteOut("a%{onerror}b").lines(for: TransferRecord()).map(\.text) == ["a"])
        let lines = WriteOut("a%{stderr}b%{stdout}c").lines(for: failed)
        #expect(lines.map(\.isError) == [false, true, false])
        #expect(WriteOut("%{a} %{json} %{http_code}").unknownNames == ["a"])
    }

    @Test func `json holds every variable and the transfers`() throws {
        let text = WriteOut("%{json}").lines(for: failed).map(\.text).joined()
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(Set((object ?? [:]).keys) == Set(TransferRecord().values.map(\.0) + ["transfers"]))
    }
}

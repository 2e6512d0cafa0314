import Rondo
import Testing

@testable import RondoCommand

struct WriteOutTests {
    private let failed = WriteOut.Result(metrics: nil, contentType: "text/x", failure: "why", exitStatus: 1)

    @Test(arguments: [
        ("plain", "plain"), ("100%%", "100%"), ("a\\nb\\tc\\\\", "a\nb\tc\\\\"), ("5% %", "5% %"),
        ("%{http_code} %{content_type} %{errormsg}\\n", "0 text/x why\n"), ("%{time_total}", "0.0"),
    ])
    func `a format is curl's`(format: String, expected: String) throws {
        #expect(try WriteOut(format).text(for: failed) == expected)
    }

    @Test(arguments: ["%{nothing}", "%{json"]) func `what is no variable is refused`(format: String) {
        #expect(throws: CommandFailure.self) { try WriteOut(format) }
    }

    @Test func `json holds every variable and the transfers`() throws {
        let text = try WriteOut("%{json}").text(for: failed)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        let keys = Set((object ?? [:]).keys)
        #expect(keys == WriteOut.names.subtracting(["json"]).union(["transfers"]))
    }
}

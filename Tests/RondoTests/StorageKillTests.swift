import Rondo
import RondoTestSupport
import Testing

/// Tests that everything stored is there after a kill: `RondoStorageProbe` stores until it is killed.
@Suite(.timeLimit(.minutes(5))) struct StorageKillTests {
    private static func start(_ arguments: String...) throws -> TestServerProcess {
        try TestServerProcess([BuiltFiles.path("RondoStorageProbe")] + arguments)
    }

    private static func numbers(_ pairs: some Sequence<Substring>) -> [String: Int] {
        var numbers: [String: Int] = [:]
        for pair in pairs {
            let parts = pair.split(separator: "=")
            if parts.count == 2 { numbers[String(parts[0])] = Int(parts[1]) }
        }
        return numbers
    }

    @Test func `UC-57 killed at any moment, all cookies of finished loads are there`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var stored: [String: Int] = [:]
        // What Foundation's file has for sure: what the processes before have stored, once a load has ended. It is written
        // once a second at most; the rest the program sees there when it has made a request.
        var filed: [String: Int] = [:]
        var next = 0
        for _ in 0..<20 {
            let probe = try Self.start("cookies", folder.path, "\(next)")
            let seen = Self.numbers(try probe.line(after: "seen ").split(separator: " "))
            let sent = Self.numbers(
                try probe.line(after: "sent ").split(separator: ";").map { $0.drop { $0 == " " } })
            for (name, number) in stored {
                // One that it has not come to report may be there as well.
                #expect(sent[name] ?? -1 >= number, "\(name): \(sent[name] ?? -1), stored \(number)")
            }
            for (name, number) in filed {
                #expect(seen[name] ?? -1 >= number, "\(name): \(seen[name] ?? -1), stored \(number)")
            }
            filed = stored
            for _ in 0..<Int.random(in: 1...15) {
                stored.merge(Self.numbers([try probe.line(after: "stored ")[...]])) { $1 }
            }
            probe.terminate()
            next = (stored.values.max() ?? 0) + 2
        }
        // The folder is named for the program's.
        let own = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first)
        #expect(try Self.mode(folder.path + "/" + own) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/" + own)
        #expect(names.contains("cookies.sqlite"))
        for name in names where name.hasPrefix("cookies.sqlite") {
            #expect(try Self.mode(folder.path + "/" + own + "/" + name) == 0o600, "\(name)")
        }
    }

    @Test func `UC-54 killed at any moment, no response that was there is lost or broken`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var known: Set<Int> = []
        var next = 0
        for _ in 0..<20 {
            let probe = try Self.start("responses", folder.path, "\(next)")
            let found = Set(try probe.line(after: "found ").split(separator: " ").compactMap { Int($0) })
            #expect(try probe.line(after: "broken ").isEmpty)
            #expect(found.isSuperset(of: known))
            known = found
            for _ in 0..<Int.random(in: 1...60) {
                next = try #require(Int(try probe.line(after: "stored "))) + 1
            }
            probe.terminate()
        }
        // One that ends in an orderly way writes what it has.
        let found = try Self.found(in: folder, from: next, storing: 5)
        #expect(found.isSuperset(of: known))
        let all = try Self.found(in: folder, from: next + 5, storing: 0)
        #expect(all.isSuperset(of: found.union(next..<next + 5)))
    }

    /// Runs the program to its end.
    private static func found(in folder: URL, from first: Int, storing count: Int) throws -> Set<Int> {
        let output = try TestServerProcess.run([
            BuiltFiles.path("RondoStorageProbe"), "responses", folder.path, "\(first)", "\(count)",
        ])
        let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("found ") })
        return Set(line.split(separator: " ").compactMap { Int($0) })
    }

    private static func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }
}

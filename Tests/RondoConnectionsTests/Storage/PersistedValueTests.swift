import Rondo
import RondoHTTP
import RondoTestSupport
import Synchronization
import Testing

@testable import RondoConnections

/// Tests values that a file keeps: when it is written, by which thread, and what a killed process leaves.
@Suite(.timeLimit(.minutes(5))) struct PersistedValueTests {
    /// Lines, with a note of the thread that takes each.
    private struct Lines: Persistable {
        var lines: [String] = []
        var takers: Box<[UInt]>?

        init(_ lines: [String]) { self.lines = lines }
        static var emptyForm: [String] { [] }

        func add(to form: inout [String], from position: Int) -> Int? {
            takers?.mutate { $0.append(UInt(pthread_self())) }
            guard position < lines.count else { return nil }
            form.append(lines[position])
            return position + 1
        }
    }

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let directory = try Stranger.Directory()
        try withExtendedLifetime(directory) { try body(URL(fileURLWithPath: directory.path)) }
    }

    private func lines(in file: URL) throws -> [String] {
        try JSONDecoder().decode([String].self, from: Data(contentsOf: file))
    }

    @Test func `changes are written once for all within the delay, and by no caller`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("lines")
            let takers = Box<[UInt]>([])
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 0.05)
            try value.keep(in: file, otherwise: nil, onFailure: nil)
            value.change { lines in
                lines.takers = takers
                return false
            }
            for index in 0..<1_000 {
                value.change { lines in
                    lines.lines = ["\(index)"]
                    return true
                }
            }
            try waitFor("the file") { try? lines(in: file) == ["999"] ? () : nil }
            #expect(!takers.value.contains(UInt(pthread_self())))
            let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test func `a program may end where it is told that a file cannot be written`() async {
        await #expect(processExitsWith: .success) {
            let directory = try Stranger.Directory()
            let folder = URL(fileURLWithPath: directory.path).appendingPathComponent("folder")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 0.01)
            try value.keep(in: folder.appendingPathComponent("lines"), otherwise: nil) { _ in exit(0) }
            try FileManager.default.removeItem(at: folder)
            try Data().write(to: folder)
            value.change { lines in
                lines.lines.append("a")
                return true
            }
            // The writer's thread ends the process.
            poll(nil, 0, 30_000)
            exit(1)
        }
    }

    @Test
    func `changes wait for the delay or a flush, and a flush without changes writes nothing`() throws {
        try withFolder { folder in
            let file = folder.appendingPathComponent("lines")
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 3_600)
            try value.keep(in: file, otherwise: nil, onFailure: nil)
            for text in ["a", "b"] {
                value.change { lines in
                    lines.lines.append(text)
                    return true
                }
            }
            #expect(!FileManager.default.fileExists(atPath: file.path))
            value.flush()
            #expect(try lines(in: file) == ["a", "b"])
            try FileManager.default.removeItem(at: file)
            value.change { _ in false }
            value.flush()
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test func `waiting changes go to the same file again, and not to another file`() throws {
        try withFolder { folder in
            let (first, second) = (folder.appendingPathComponent("1"), folder.appendingPathComponent("2"))
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 3_600)
            try value.keep(in: first, otherwise: nil, onFailure: nil)
            value.change { lines in
                lines.lines = ["a"]
                return true
            }
            try value.keep(in: first, otherwise: nil, onFailure: nil)
            #expect(value.read { $0.lines } == ["a"])
            value.change { lines in
                lines.lines = ["b"]
                return true
            }
            try value.keep(in: second, otherwise: Lines([]), onFailure: nil)
            #expect(try lines(in: first) == ["b"])
            #expect(value.read { $0.lines } == [])
            value.flush()
            #expect(!FileManager.default.fileExists(atPath: second.path))
            // What is no such file changes nothing.
            try Data("{}".utf8).write(to: first)
            #expect(throws: (any Error).self) { try value.keep(in: first, otherwise: nil, onFailure: nil) }
            _ = value.replace(with: Lines(["c"]))
            #expect(try lines(in: second) == ["c"])
        }
    }

    @Test func `waiting changes are written when the program ends in an orderly way`() async throws {
        let directory = try Stranger.Directory()
        setenv("RONDO_TEST_KEPT", directory.path, 1)
        defer { unsetenv("RONDO_TEST_KEPT") }
        await #expect(processExitsWith: .success) {
            let path = try #require(ProcessInfo.processInfo.environment["RONDO_TEST_KEPT"])
            try URLConnection.PermanentCredentials.keep(in: URL(fileURLWithPath: path + "/credentials"))
            let space = URLProtectionSpace(
                host: "localhost", port: 80, protocol: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
            PersistedCredentials.store(
                URLCredential(user: "u", password: "p", persistence: .permanent), for: space)
            exit(0)
        }
        let data = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/credentials"))
        #expect(try JSONDecoder().decode([CredentialList.Entry].self, from: data).map(\.user) == ["u"])
    }

    @Test func `UC-51 a write that failed is tried again by the next flush`() throws {
        try withFolder { folder in
            let failures = Box(0)
            let later = folder.appendingPathComponent("later")
            let file = later.appendingPathComponent("lines")
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 3_600)
            try value.keep(in: file, otherwise: nil) { _ in failures.mutate { $0 += 1 } }
            value.change { lines in
                lines.lines = ["a"]
                return true
            }
            for _ in 0..<2 { value.flush() }
            #expect(failures.value == 1)
            try FileManager.default.createDirectory(at: later, withIntermediateDirectories: false)
            value.flush()
            #expect(try lines(in: file) == ["a"])
        }
    }

    @Test func `UC-51 a write that failed is tried again when the program ends`() async throws {
        let directory = try Stranger.Directory()
        setenv("RONDO_TEST_KEPT_LATER", directory.path, 1)
        defer { unsetenv("RONDO_TEST_KEPT_LATER") }
        await #expect(processExitsWith: .success) {
            let path = try #require(ProcessInfo.processInfo.environment["RONDO_TEST_KEPT_LATER"])
            let folder = URL(fileURLWithPath: path + "/later")
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 0)
            let hasFailed = Latch()
            try value.keep(in: folder.appendingPathComponent("lines"), otherwise: nil) { _ in
                hasFailed.open()
            }
            value.change { lines in
                lines.lines = ["a"]
                return true
            }
            try hasFailed.wait()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            withExtendedLifetime(value) { exit(0) }
        }
        #expect(try lines(in: URL(fileURLWithPath: directory.path + "/later/lines")) == ["a"])
    }

    @Test func `remains of a process that was killed while it wrote are removed, a young file is not`() throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("lines")
            let value = PersistedValue(Lines([]), label: "test", writeDelay: 3_600)
            let remains = folder.appendingPathComponent("lines.\(UUID().uuidString)")
            let young = folder.appendingPathComponent("lines.\(UUID().uuidString)")
            let other = folder.appendingPathComponent("lines.bak")
            for url in [remains, young, other] { try Data("[".utf8).write(to: url) }
            let past = Date(timeIntervalSinceNow: -2 * PrivateFile.remainsAge)
            for url in [remains, other] {
                try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: url.path)
            }
            try value.keep(in: file, otherwise: nil, onFailure: nil)
            // Another process may be writing the young one.
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(Set(names) == [young.lastPathComponent, "lines.bak"])
        }
    }

    @Test func `loops and the writer change and take hosts at once, and the file has all in the end`() throws
    {
        try withFolder { folder in
            let file = folder.appendingPathComponent("hosts")
            let value = PersistedValue(StrictTransportSecurity(), label: "test", writeDelay: 0.001)
            try value.keep(in: file, otherwise: nil, onFailure: nil)
            let isDone = Atomic(0)
            for part in 0..<2 {
                let thread = Thread {
                    for index in 0..<2_000 {
                        let host = "h\(index).p\(part).example"
                        value.change { $0.received("max-age=1000", from: host, now: Date()) }
                        // Slots become free and are used again.
                        if index % 3 == 0 {
                            value.change { $0.received("max-age=0", from: host, now: Date()) }
                        }
                    }
                    isDone.add(1, ordering: .sequentiallyConsistent)
                }
                thread.start()
            }
            try waitFor("the threads") { isDone.load(ordering: .sequentiallyConsistent) == 2 ? () : nil }
            value.flush()
            let listing = try JSONDecoder().decode(
                StrictTransportSecurity.Listing.self, from: Data(contentsOf: file))
            let expected = (0..<2_000).filter { $0 % 3 != 0 }.count * 2
            #expect(listing.policies.count == expected)
            #expect(value.read { $0.count } == expected)
        }
    }

    // MARK: Credentials

    private func entry(_ host: String, realm: String, password: String = "p") throws -> CredentialList.Entry {
        let space = URLProtectionSpace(
            host: host, port: 80, protocol: "http", realm: realm,
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        return try #require(
            CredentialList.Entry(
                URLCredential(user: "u", password: password, persistence: .permanent), for: space))
    }

    @Test func `UC-51 a server that names ever new realms has a few kept, and those of others stay`() throws {
        var list = CredentialList()
        func add(_ entry: CredentialList.Entry) -> Bool { list.add(entry) }
        #expect(try add(entry("a.example", realm: "r")))
        #expect(try !add(entry("a.example", realm: "r")))
        #expect(try add(entry("a.example", realm: "r", password: "q")))
        for index in 0..<100 { #expect(try add(entry("b.example", realm: "\(index)"))) }
        #expect(list.entries.count == 1 + CredentialList.maximumPerServer)
        #expect(list.entries.first?.password == "q" && list.entries.last?.realm == "99")
        for index in 0..<CredentialList.maximumCount {
            #expect(try add(entry("h\(index).example", realm: "r")))
        }
        #expect(list.entries.count == CredentialList.maximumCount)
        #expect(list.entries.first?.host == "h0.example")
        let long = String(repeating: "x", count: CredentialList.maximumEntrySize)
        #expect(try !add(entry("c.example", realm: long)))
    }
}

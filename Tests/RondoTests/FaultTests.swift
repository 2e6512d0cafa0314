import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Tests loops, loads and streams while system calls fail: `RondoFaultProbe` plays them under the library of
/// Tests/RondoFaults.
@Suite(.timeLimit(.minutes(5)), .serialized) struct FaultTests {
    /// The library, compiled once.
    private static let library = Result<String, any Error> {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("RondoFaults/faults.c").path
        let folder = NSTemporaryDirectory() + "rondo-faults-library-\(getpid())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let library = folder + "/faults.so"
        try TestServerProcess.run(
            ["env", "cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"])
        return library
    }

    /// Plays a scenario; one that finds something broken exits with 1, which is an error here.
    ///
    /// - Returns: What it has said, its log as well.
    @discardableResult
    private static func play(
        _ scenario: String, _ url: URL, faults: String?, seed: Int = 1, callers: String = "",
        environment: [String] = []
    ) throws -> String {
        let probe = try BuiltFiles.path("RondoFaultProbe")
        var environment = environment
        if let faults {
            environment += [
                "LD_PRELOAD=\(try library.get())", "RONDO_FAULTS=\(faults)", "RONDO_FAULT_SEED=\(seed)",
                "RONDO_FAULT_CALLERS=\(callers)", "RONDO_FAULT_ARMED=0", "RONDO_FAULT_LOG=1",
            ]
        }
        let output = try TestServerProcess.run(
            ["sh", "-c", "exec \"$@\" 2>&1", "sh", "env"] + environment
                + [probe, scenario, url.absoluteString])
        #expect(output.contains("\(scenario) holds"))
        return output
    }

    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/held" {
                    // Until the client has gone.
                    _ = try peer.readRequest()
                }
                if request.target == "/coded" {
                    try peer.send(
                        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(coded.count)\r\n\r\n")
                    try peer.send(coded)
                    continue
                }
                // What a cache stores.
                let fields =
                    request.target.hasPrefix("/kept")
                    ? ["Cache-Control: max-age=1000", "Set-Cookie: a=1; Max-Age=1000"] : []
                try peer.respond(
                    "200 OK", fields,
                    body: request.target == "/large" ? String(repeating: "x", count: 300_000) : "body")
            }
        }
    }

    @Test func `CS-12 CS-17 where epoll sets take nothing more every owner is told so, and timers go on`()
        throws
    {
        try Self.play(
            "watches", Self.server().url(), faults: "epoll_ctl=ENOSPC@1", callers: "RondoFaultProbe,libev.so")
    }

    @Test func `CS-12 CS-17 where memory for epoll sets has run out every owner is told so`() throws {
        try Self.play("watches", Self.server().url(), faults: "epoll_ctl=ENOSPC@1")
    }

    @Test func `where no thread can be made nothing waits for one, and every owner is told so`() throws {
        try Self.play("threads", Self.server().url(), faults: "pthread_create=EAGAIN@1")
    }

    @Test func `where no descriptor is left a loop runs, says so once, and is whole again when there is one`()
        throws
    {
        let output = try Self.play("descriptors", Self.server().url(), faults: nil)
        // One loop of the main thread, and one of another.
        #expect(output.components(separatedBy: "A run loop goes on without").count - 1 <= 2)
    }

    @Test func `where no descriptor is left a new connection gets that of an idle one`() throws {
        try Self.play("kept", Self.server().url(), faults: nil)
    }

    @Test(arguments: 1...3)
    func `while every call fails now and then each object ends or works, and nothing traps or spins`(
        seed: Int
    ) throws {
        try Self.play(
            "all", Self.server().url(), faults: "all@0.03", seed: seed, callers: "RondoFaultProbe,libev.so")
    }

    @Test(arguments: 1...2)
    func `where libraries have no memory loads end with that as their error, or without what is stored`(
        seed: Int
    ) throws {
        let folder = NSTemporaryDirectory() + "rondo-faults-memory-\(getpid())"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Self.play(
            "memory", Self.server().url(), faults: "malloc@0.2", seed: seed, callers: "libsqlite3.so,libz.so",
            environment: ["XDG_CACHE_HOME=\(folder)/cache", "XDG_DATA_HOME=\(folder)/data"])
    }

    @Test(arguments: 1...3)
    func
        `CH-4 PR-6 while every call fails now and then each child that is started ends once, and none is left`(
            seed: Int
        ) throws
    {
        try Self.play(
            "children", Self.server().url(), faults: "all@0.05", seed: seed,
            callers: "RondoFaultProbe,libev.so")
    }

    @Test(arguments: [0.3, 1])
    func `CH-4 where descriptors do not leave epoll sets each child is told of once, and none is left`(
        rate: Double
    ) throws {
        try Self.play(
            "children-in-sets", Self.server().url(), faults: "epoll_ctl_del=ENOMEM@\(rate)",
            callers: "RondoFaultProbe,libev.so")
    }

    @Test func `a program that is started while loops run inherits no descriptor and no blocked signal`()
        throws
    {
        try Self.play("exec", Self.server().url(), faults: nil)
    }

    @Test func `a coding whose library is not there is not accepted, and such content comes as it is`() throws
    {
        let accepted = Mutex<[String?]>([])
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                accepted.withLock { $0.append(request.value("Accept-Encoding")) }
                // No Brotli: with its library this would be an error.
                try peer.respond(
                    "200 OK", ["Content-Encoding: br", "Set-Cookie: a=1; domain=name.localhost"],
                    body: "\u{1}\u{2}")
            }
        }
        let url = try #require(URL(string: "http://name.localhost:\(server.port)/"))
        let output = try Self.play(
            "libraries", url, faults: "",
            environment: ["RONDO_FAULT_LIBRARIES=libbrotlidec.so.1,libzstd.so.1,libpsl.so.5"])
        #expect(accepted.withLock { $0 } == ["gzip, deflate"])
        #expect(output.contains("libpsl"))
    }
}

/// "body", as gzip has it.
private let coded: [UInt8] = [
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0xca, 0x4f, 0xa9, 0x04, 0x00, 0xb2,
    0x0b, 0xa8, 0xdb, 0x04, 0x00, 0x00, 0x00,
]

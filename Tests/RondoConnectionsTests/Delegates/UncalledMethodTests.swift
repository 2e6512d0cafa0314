import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoCore

/// Methods that a class means for a delegate's and that Swift does not call: they are warned about, once a class.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct UncalledMethodTests {
    /// All warnings so far, once there are `count` of them.
    private static func warnings(atLeast count: Int) throws -> [String] {
        try waitFor("\(count) warnings; there are \(LogCatcher.log.entries)") {
            LogCatcher.log.entries.count >= count ? LogCatcher.log.entries : nil
        }
    }

    private class Conforming: NSObject, URLConnectionDataDelegate, @unchecked Sendable {
        func connection(_ connection: URLConnection, didReceive response: URLResponse) {}
    }

    private class Overriding: Conforming, @unchecked Sendable {
        override func connection(_ connection: URLConnection, didReceive response: URLResponse) {}
    }

    private class Adding: Overriding, @unchecked Sendable {
        func connection(_ connection: URLConnection, didReceive data: Data) { preconditionFailure("called") }
        func connectionDidFinishLoading(_ connection: URLConnection) { preconditionFailure("called") }
    }

    private final class AddingMore: Adding, @unchecked Sendable {
        override func connection(_ connection: URLConnection, didReceive data: Data) {}
        func connection(_ connection: URLConnection, didFailWithError error: NSError) {}
    }

    private class Generic<Value>: Conforming, @unchecked Sendable {
        func connection(_ connection: URLConnection, willCacheResponse cachedResponse: CachedURLResponse)
            -> CachedURLResponse?
        {
            nil
        }
    }

    /// As it may have been written for Objective-C, where the name is enough.
    private final class Unrelated: NSObject, Sendable {
        func connection(_ connection: URLConnection, didReceive data: NSData) {}
        func connectionDidFinishLoading(_ connection: URLConnection) {}
        func connectionOfAnotherKind(_ connection: URLConnection) {}
    }

    private final class Nothing: NSObject, Sendable {}

    /// Conforms to less than it has methods of.
    private final class BaseOnly: NSObject, URLConnectionDelegate, Sendable {
        func connection(_ connection: URLConnection, didFailWithError error: any Error) {}
        func connection(_ connection: URLConnection, didReceive data: Data) {}
    }

    private final class Saving: NSObject, Sendable {
        func downloadDidFinish(_ download: URLDownload) {}
    }

    /// The delegate of downloads, with a method of its own that is called as one of connections is.
    private final class Downloading: NSObject, URLDownloadDelegate, Sendable {
        func connectionDidFinishLoading(_ connection: URLConnection) {}
    }

    private static func server() throws -> TestServer {
        try TestServer.answering { _ in "ok" }
    }

    private static func load(_ delegates: [any Sendable], from server: TestServer) throws {
        try onLoopThread { loop in
            for delegate in delegates {
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: delegate)
                loop.runOut()
            }
        }
    }

    @Test func `UC-74 a method that only a subclass of the conforming class adds is warned about`()
        async
    {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            let server = try Self.server()
            // What overrides or is complete is looked at first, and nothing is said.
            try Self.load([Conforming(), Overriding(), Adding(), Adding(), AddingMore()], from: server)
            let entries = try UncalledMethodTests.warnings(atLeast: 2)
            let suite = "RondoConnectionsTests.UncalledMethodTests"
            precondition(
                entries[0].hasPrefix("warning: \(suite).Adding is used")
                    && entries[0].contains(
                        "connection(_:didReceive:) with Data, connectionDidFinishLoading(_:)")
                    && entries[0].contains("\(suite).Conforming declares")
                    && entries[0].contains("URLConnectionDataDelegate"), "\(entries)")
            precondition(
                entries[1].contains("\(suite).AddingMore")
                    && entries[1].contains("connection(_:didFailWithError:) with NSError")
                    && !entries[1].contains("didReceive"), "\(entries)")
            final class Local: Conforming, @unchecked Sendable {
                func connectionDidFinishLoading(_ connection: URLConnection) {}
            }
            try Self.load([Generic<Int>(), Local(), Generic<Int>()], from: server)
            let more = try UncalledMethodTests.warnings(atLeast: 4)
            precondition(
                more[2].contains("Generic<Swift.Int>")
                    && more[2].contains("connection(_:willCacheResponse:)"),
                "\(more)")
            precondition(
                more[3].contains("Local") && more[3].contains("connectionDidFinishLoading(_:)"), "\(more)")
            precondition(more.count == 4, "\(more)")
        }
    }

    @Test func `UC-74 a delegate that has such methods and does not conform is warned about, once`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            let server = try Self.server()
            try Self.load(["text", Nothing(), Unrelated(), Unrelated(), BaseOnly()], from: server)
            try onLoopThread { loop in
                // It is none of a connection's, and nothing is said of it.
                let delegates: [any Sendable] = [Downloading(), Saving(), Saving()]
                for delegate in delegates {
                    _ = URLDownload(request: URLRequest(url: server.url()), delegate: delegate)
                    loop.runOut()
                }
            }
            let entries = try UncalledMethodTests.warnings(atLeast: 3)
            precondition(
                entries[0].contains("UncalledMethodTests.Unrelated")
                    && entries[0].contains(
                        "connection(_:didReceive:) with NSData, connectionDidFinishLoading(_:)")
                    && entries[0].contains("does not conform to URLConnectionDataDelegate"), "\(entries)")
            precondition(
                entries[1].contains("BaseOnly") && entries[1].contains("connection(_:didReceive:) with Data")
                    && !entries[1].contains("didFailWithError"), "\(entries)")
            precondition(
                entries[2].contains("Saving") && entries[2].contains("downloadDidFinish(_:)")
                    && entries[2].contains("URLDownloadDelegate"), "\(entries)")
            precondition(entries.count == 3, "\(entries)")
        }
    }

    private class Listening: NSObject, StreamDelegate {}

    private final class Hearing: Listening {
        func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {}
    }

    @Test func `ST-9 a stream's delegate that adds the method below the conforming class is warned about`()
        async
    {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            let stream = Rondo.InputStream(data: Data())
            let delegates = [Hearing(), Hearing()]
            for delegate in delegates { stream.delegate = delegate }
            let entries = try UncalledMethodTests.warnings(atLeast: 1)
            precondition(
                entries.count == 1 && entries[0].contains("Hearing")
                    && entries[0].contains("stream(_:handle:)") && entries[0].contains("StreamDelegate"),
                "\(entries)")
        }
    }

    @Test func `UC-74 a program that ends at once has said what it had to say`() async {
        let result = await #expect(
            processExitsWith: .exitCode(3), observing: [\.standardErrorContent]
        ) {
            _ = URLConnection(
                request: URLRequest(url: url("http://127.0.0.1:1/")), delegate: Adding(),
                startImmediately: false)
            exit(3)
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("connectionDidFinishLoading(_:)"), "\(text)")
    }

    /// The lists of methods are those of the protocols.
    @Test(arguments: [DelegateProtocol.base, .data, .download, .fileDownload])
    func `UC-74 every method of the protocols is looked for`(kind: DelegateProtocol) {
        var declared = DeclaredMethods()
        let name = "$s16RondoConnections\(kind.name.utf8.count)\(kind.name)Mp"
        // Any address of this program will do.
        let address = unsafeBitCast(Conforming.self, to: UnsafeRawPointer.self)
        let methods = declared.ofProtocol(mangled: name, near: address)
        // The defaults are found, which all of them have but one.
        let required = MethodSignature(
            "connectionDidFinishDownloading(_: URLConnection, destinationURL: URL)")
        #expect(methods == kind.methods.subtracting([required]))
        #expect(kind.methods.contains(required) == (kind.name == "URLConnectionDownloadDelegate"))
    }

    @Test func `a file that is no program has no symbols`() throws {
        let path = NSTemporaryDirectory() + "/rondo-\(UUID().uuidString)"
        defer { unlink(path) }
        #expect(ProgramSymbols(path: path, base: 0) == nil)
        let program = try Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe"))
        // Every beginning of a program, and every byte of its header altered.
        for count in [0, 1, 4, 63, 64, 100, 4096, 100_000] {
            try program.prefix(count).write(to: URL(fileURLWithPath: path))
            #expect(ProgramSymbols(path: path, base: 0) == nil)
        }
        var small = try Data(contentsOf: URL(fileURLWithPath: "/bin/true"))
        for offset in 0..<64 {
            for value in [0, 1, 0x7F, 0xFF] as [UInt8] {
                let old = small[offset]
                small[offset] = value
                try small.write(to: URL(fileURLWithPath: path))
                // It may still be one: it only must not trap.
                _ = ProgramSymbols(path: path, base: 0)?.names(beginningWith: "$s")
                small[offset] = old
            }
        }
    }

    @Test func `a signature has the name that Swift prints, and its types without modules`() {
        let signature = MethodSignature(
            demangled:
                "Main.A.f(_: Foundation.Data, of: (Swift.Int, b: Swift.Array<Swift.String?>), g: Other.A.B) -> ()",
            of: "Main.A")
        #expect(signature?.text == "f(_: Data, of: (Int, b: Array<String?>), g: B)")
        #expect(signature?.name == "f(_:of:g:)")
        #expect(signature?.types == ["Data", "(Int, b: Array<String?>)", "B"])
        let local = MethodSignature(
            demangled: "f(_: Swift.Int) -> () in A #1 in Main.g() -> ()", of: "A #1 in Main.g() -> ()")
        #expect(local?.name == "f(_:)")
        let extended = MethodSignature(
            demangled: "(extension in Other):Main.A.f() -> ()", of: "Main.A")
        #expect(extended?.name == "f()")
        #expect(extended?.types == [])
        #expect(MethodSignature(demangled: "Main.A.B.f() -> ()", of: "Main.A") == nil)
        #expect(MethodSignature(demangled: "Main.AB.f() -> ()", of: "Main.A") == nil)
    }
}

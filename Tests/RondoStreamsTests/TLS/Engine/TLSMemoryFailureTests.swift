import RondoCore
import RondoStreams
import RondoTestSupport
import Synchronization
import Testing

/// OpenSSL asks for memory at many places, and is refused at one after another.
@Suite(.timeLimit(.minutes(10))) struct TLSMemoryFailureTests {
    /// OpenSSL's memory, by functions of ours; to be called before OpenSSL has any, so in a process of its own.
    private enum Memory {
        /// The number of requests that are still granted, and of those that are refused then.
        static let granted = Atomic(Int.max)
        static let refused = Atomic(0)

        private typealias Make =
            @convention(c) (Int, UnsafePointer<CChar>?, Int32) -> UnsafeMutableRawPointer?
        private typealias Change =
            @convention(c) (
                UnsafeMutableRawPointer?, Int, UnsafePointer<CChar>?, Int32
            ) -> UnsafeMutableRawPointer?
        private typealias Free =
            @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int32) -> Void

        static func isGranted() -> Bool {
            if granted.subtract(1, ordering: .relaxed).newValue >= 0 { return true }
            return refused.subtract(1, ordering: .relaxed).newValue < 0
        }

        static func takeOver() {
            let make: Make = { size, _, _ in Memory.isGranted() ? malloc(size) : nil }
            let change: Change = { old, size, _, _ in Memory.isGranted() ? realloc(old, size) : nil }
            let release: Free = { old, _, _ in free(old) }
            guard let symbol = dlsym(nil, "CRYPTO_set_mem_functions") else { fatalError("no OpenSSL") }
            typealias Setter = @convention(c) (Make, Change, Free) -> Int32
            precondition(unsafeBitCast(symbol, to: Setter.self)(make, change, release) == 1, "too late")
        }

        /// - Returns: How many were asked for.
        static func refusing(_ count: Int, after: Int, _ body: () -> Void) -> Int {
            granted.store(after, ordering: .relaxed)
            refused.store(count, ordering: .relaxed)
            body()
            let left = granted.exchange(.max, ordering: .relaxed)
            refused.store(0, ordering: .relaxed)
            return after - left
        }
    }

    /// Both sides of a connection, one step after the other.
    ///
    /// - Returns: Whether the client has read what the server has said.
    private static func talk(_ client: TLSSettings, _ server: TLSSettings, host: String = "localhost") throws
        -> Bool
    {
        let (one, other) = try PlainSocket.pair()
        defer { for end in [one, other] { close(end) } }
        for end in [one, other] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        let context = try TLSContext(client)
        let a = try TLSEngine(
            context: context, descriptor: one, hostName: host, port: 443, sessions: TLSSessionCache())
        let b = try TLSEngine(context: TLSContext(server), descriptor: other, hostName: "the client")
        var (aIsDone, bIsDone) = (false, false)
        for _ in 0..<20 where !(aIsDone && bIsDone) {
            if !aIsDone { aIsDone = try a.handshake() == .done }
            if !bIsDone { bIsDone = try b.handshake() == .done }
        }
        guard aIsDone, bIsDone else { return false }
        _ = a.information
        _ = try [1, 2, 3].withUnsafeBytes { try b.write($0) }
        var buffer = [UInt8](repeating: 0, count: 100)
        guard case .bytes = try buffer.withUnsafeMutableBytes({ try a.read(into: $0) }) else { return false }
        a.shutdown()
        b.shutdown()
        return true
    }

    @Test func `no memory for OpenSSL is an error, and never a trap or trust`() async {
        await #expect(processExitsWith: .success) {
            Memory.takeOver()
            try Self.refuseEverywhere()
        }
    }

    private static func refuseEverywhere() throws {
        let files = TestCertificates.shared
        let text = try String(contentsOfFile: files.path(.good), encoding: .utf8)
        guard let own = TLSCertificate.certificates(inPEM: text)?.first else { fatalError("no certificate") }
        var good = TLSSettings.test
        good.tolerance = .expiredCertificates
        good.revocationLists = [.file(files.revocationListPath)]
        good.certificateAuthorities.append(.certificates([own]))
        good.pinnedKeys = [own.publicKeyHash]
        var otherPin = good
        otherPin.pinnedKeys = [Data(count: 32)]
        var otherAuthority = good
        otherAuthority.pinnedKeys = []
        otherAuthority.certificateAuthorities = [.file(files.strangerPath)]
        let server = try TLSServerTests.settings {
            $0.identities = $0.identity.map { ["localhost": $0] } ?? [:]
            $0.clientCertificates = .requested
        }
        let expired = TLSSettings.server(
            try TLSIdentity(chainFile: files.path(.expired), privateKeyFile: files.keyPath))
        let worksBefore = try talk(good, server)
        precondition(worksBefore)
        // A client that may succeed, and two that must not: for a pin, and for an authority behind a problem that is
        // tolerated.
        for (client, server, mayWork) in [
            (good, server, true), (otherPin, server, false), (otherAuthority, expired, false),
        ] {
            for refused in [1, .max / 2] {
                refuse(refused) {
                    let works = (try? talk(client, server)) ?? false
                    precondition(mayWork || !works, "the server was trusted")
                }
            }
        }
        // What a program reads.
        refuse(.max / 2) {
            _ = own.publicKeyHash.count + own.sha256Fingerprint.count
            _ = TLSCertificate.certificates(inPEM: text)
            _ = try? TLSIdentity(chainFile: files.path(.good), privateKeyFile: files.keyPath)
        }
        let worksAfter = try talk(good, server)
        precondition(worksAfter)
    }

    /// Runs `body` again and again, each time with memory refused somewhat later, until it asks for no more.
    private static func refuse(_ refused: Int, _ body: () -> Void) {
        var place = 0
        while Memory.refusing(refused, after: place, body) > place { place += place < 100 ? 1 : 37 }
        precondition(place > 50, "OpenSSL took no memory by our functions")
    }
}

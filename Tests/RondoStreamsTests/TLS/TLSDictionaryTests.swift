import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Apple's dictionary of settings, and the levels, as values and on streams.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct TLSDictionaryTests {
    private func settings(
        _ values: [String: Any], basedOn base: TLSSettings? = nil
    ) throws -> TLSSettings {
        let found = try #require(TLSSettings.dictionary(values, basedOn: base))
        return try #require(found)
    }

    @Test func `ST-43 an empty TLS dictionary means the default settings`() throws {
        #expect(try settings([:]) == TLSSettings())
        #expect(try settings(["unknown": 1]) == TLSSettings())
    }

    @Test func `ST-43 each key of a TLS dictionary has its effect`() throws {
        #expect(
            try settings(["kCFStreamSSLAllowsExpiredCertificates": true]).tolerance == .expiredCertificates)
        #expect(try settings(["kCFStreamSSLAllowsExpiredRoots": true]).tolerance == .expiredRoots)
        #expect(
            try settings(["kCFStreamSSLAllowsAnyRoot": true, "kCFStreamSSLAllowsExpiredRoots": false])
                .tolerance
                == .anyRoot)
        #expect(try settings(["kCFStreamSSLValidatesCertificateChain": false]).verification == .none)
        #expect(try settings(["kCFStreamSSLValidatesCertificateChain": true]).verification == .full)
        #expect(try settings(["kCFStreamSSLPeerName": "example.com"]).serverName == "example.com")
        #expect(try settings(["kCFStreamSSLPeerName": NSNull()]).verification == .withoutHostName)
        let none = try settings([
            "kCFStreamSSLPeerName": NSNull(), "kCFStreamSSLValidatesCertificateChain": false,
        ])
        #expect(none.verification == .none)
        let identity = try TLSServerTests.identity
        let server = try settings(["kCFStreamSSLIsServer": true, "kCFStreamSSLCertificates": [identity]])
        #expect(server.role == .server)
        #expect(server.identity == identity)
    }

    @Test func `ST-43 a peer name is checked, also where none was to be checked before`() throws {
        let unchecked = try settings(["kCFStreamSSLPeerName": NSNull()])
        let named = try settings(["kCFStreamSSLPeerName": "example.com"], basedOn: unchecked)
        #expect(named.verification == .full && named.serverName == "example.com")
        // Without a check of the chain a name proves nothing.
        let trusting = try settings(["kCFStreamSSLValidatesCertificateChain": false])
        #expect(
            try settings(["kCFStreamSSLPeerName": "example.com"], basedOn: trusting).verification == .none)
    }

    /// A dictionary has another order each time it is made.
    @Test func `ST-43 the keys of one dictionary take effect in one order`() throws {
        let base = try settings(["kCFStreamSSLValidatesCertificateChain": false])
        let found = try (0..<64).map { number in
            var values: [String: Any] = [
                "kCFStreamSSLValidatesCertificateChain": true, "kCFStreamSSLPeerName": NSNull(),
            ]
            // Keys that are ignored change the places of the others.
            for other in 0..<number { values["\(other)"] = other }
            return try settings(values, basedOn: base).verification
        }
        #expect(Set(found) == [.withoutHostName])
    }

    @Test func `ST-41 ST-42 the level keeps the other settings`() throws {
        var base = TLSSettings.test
        base.serverName = "example.com"
        let level = StreamSocketSecurityLevel.tlSv1.rawValue
        let found = try #require(TLSSettings.level(level, basedOn: base))
        let old = try #require(found)
        #expect(old.minimumVersion == .tls10)
        #expect(old.serverName == "example.com")
        let values = ["kCFStreamSSLLevel": StreamSocketSecurityLevel.negotiatedSSL.rawValue]
        #expect(try settings(values, basedOn: old) == base)
        let none = TLSSettings.dictionary(
            ["kCFStreamSSLLevel": StreamSocketSecurityLevel.none.rawValue], basedOn: base)
        #expect(none == .some(nil))
    }

    @Test(arguments: ["ssLv2", "ssLv3"])
    func `ST-41 SSLv2 and SSLv3 are refused in the dictionary too`(level: String) {
        let value = level == "ssLv2" ? StreamSocketSecurityLevel.ssLv2 : .ssLv3
        #expect(TLSSettings.dictionary(["kCFStreamSSLLevel": value.rawValue], basedOn: nil) == nil)
    }

    @Test func `TLS dictionary values of another type are refused`() {
        let values: [String: Any] = [
            "kCFStreamSSLLevel": 1, "kCFStreamSSLAllowsAnyRoot": "yes", "kCFStreamSSLPeerName": 7,
            "kCFStreamSSLCertificates": ["x"], "kCFStreamSSLIsServer": "no",
            "kCFStreamSSLValidatesCertificateChain": Data(), "kCFStreamSSLAllowsExpiredRoots": [],
        ]
        for (key, value) in values {
            #expect(TLSSettings.dictionary([key: value], basedOn: nil) == nil, "\(key)")
        }
    }

    /// Connects to a server with a certificate of this kind, and returns its answer, or the error's code.
    private func outcome(_ kind: TestCertificates.Kind, _ values: [String: Any]) throws -> String {
        let (server, port) = try OpenSSLServer.start(kind)
        defer { server.terminate() }
        let box = Box(values: values)
        return try onStreamThread { _ in
            let (input, output) = securedStreams(port)
            #expect(input.setProperty(box.values as AnyObject, forKey: .sslSettingsKey))
            input.open()
            output.open()
            guard output.writeAll(Array("ab\n".utf8)) else {
                return ["\((output.streamError as NSError?)?.code ?? 0)"]
            }
            return [String(decoding: input.bytes().1, as: UTF8.self)]
        }[0]
    }

    /// `@unchecked Sendable`: never changed.
    private struct Box: @unchecked Sendable {
        let values: [String: Any]
    }

    @Test func `ST-43 a TLS dictionary tolerates only the problems that it names`() throws {
        let expired = ["kCFStreamSSLAllowsExpiredCertificates": true]
        let anyRoot = ["kCFStreamSSLAllowsAnyRoot": true]
        #expect(try outcome(.expired, expired) == "ba\n")
        #expect(try outcome(.expired, anyRoot) == "-9814")
        #expect(try outcome(.expired, ["kCFStreamSSLAllowsExpiredRoots": true]) == "-9814")
        #expect(try outcome(.untrusted, anyRoot) == "ba\n")
        #expect(try outcome(.selfSigned, anyRoot) == "ba\n")
        #expect(try outcome(.untrusted, expired) == "-9812")
        #expect(try outcome(.wrongHost, anyRoot) == "-9843")
        #expect(try outcome(.wrongHost, ["kCFStreamSSLPeerName": NSNull()]) == "ba\n")
        #expect(try outcome(.wrongHost, ["kCFStreamSSLPeerName": "elsewhere.invalid"]) == "ba\n")
        #expect(try outcome(.wrongHost, ["kCFStreamSSLValidatesCertificateChain": false]) == "ba\n")
    }
}

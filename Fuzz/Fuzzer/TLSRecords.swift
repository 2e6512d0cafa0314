import CFuzzer
import Foundation
import RondoStreams

// What a hostile peer, or one on the way, says to TLS. OpenSSL itself is not watched by the fuzzer: what is looked for
// are answers of OpenSSL's that our side of it makes wrong use of. An engine must not trap or hang, an error is never
// left, and what comes out in plain text is what was put in, or the beginning of it.

/// The first byte says which side is fed, by what, and in which version; the rest is what it is fed.
func readTLS(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    let rest = Array(bytes.dropFirst())
    let version: TLSSettings.Version = first & 4 == 0 ? .tls13 : .tls12
    switch first & 3 {
    case 0: hearStranger(rest, settings: TLSPeers.client(version), pieces: first >> 3)
    case 1: hearStranger(rest, settings: TLSPeers.server(version), pieces: first >> 3)
    case 2: talkThroughMeddler(rest, version)
    default: readCertificates(rest)
    }
}

private enum TLSPeers {
    /// A certificate for localhost and its key, made anew by each run.
    private static let pem: String = {
        __lsan_disable()
        defer { __lsan_enable() }
        let path = NSTemporaryDirectory() + "/rondo-fuzz-\(getpid()).pem"
        defer { unlink(path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -days 30 -addext"
            .split(separator: " ").map(String.init) + [
                "subjectAltName=DNS:localhost", "-keyout", path, "-out", path + ".crt",
            ]
        process.standardError = FileHandle.nullDevice
        defer { unlink(path + ".crt") }
        guard (try? process.run()) != nil else { fatalError("no openssl command") }
        process.waitUntilExit()
        let parts = [path, path + ".crt"].map { (try? String(contentsOfFile: $0, encoding: .utf8)) ?? "" }
        return parts.joined()
    }()

    static func client(_ version: TLSSettings.Version) -> TLSSettings {
        var settings = TLSSettings()
        settings.certificateAuthorities = [.pem(pem)]
        settings.maximumVersion = version
        settings.alpn = ["http/1.1"]
        return settings
    }

    private static let identity: TLSIdentity = {
        __lsan_disable()
        defer { __lsan_enable() }
        do { return try TLSIdentity(chain: pem) } catch { fatalError("\(error)") }
    }()

    static func server(_ version: TLSSettings.Version) -> TLSSettings {
        var settings = TLSSettings.server(identity)
        settings.identities = ["localhost": identity]
        settings.certificateAuthorities = [.pem(pem)]
        settings.clientCertificates = .requested
        settings.maximumVersion = version
        settings.alpn = ["h2", "http/1.1"]
        return settings
    }
}

/// An engine at one end of a pair of sockets, and what the fuzzer has to know of it.
private final class TLSEnd {
    let engine: TLSEngine
    let own: Int32
    /// Where the fuzzer stands.
    let other: Int32
    private(set) var isSecure = false
    private(set) var error: TLSError?
    private(set) var received: [UInt8] = []
    private(set) var hasEnded = false

    init(_ settings: TLSSettings) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0 else {
            fatalError("no pair of sockets")
        }
        (own, other) = (ends[0], ends[1])
        do {
            engine = try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: own, hostName: "localhost", port: 443,
                sessions: TLSSessionCache())
        } catch {
            fatalError("\(error)")
        }
    }

    deinit {
        engine.shutdown()
        engine.detach()
        close(own)
        close(other)
    }

    /// Does what can be done now; `size` is that of the reader's buffer.
    func step(size: Int) {
        guard error == nil, !hasEnded else { return }
        do throws(TLSError) {
            if !isSecure {
                isSecure = try engine.handshake() == .done
                guard isSecure else { return }
                _ = engine.information
            }
            _ = try engine.flush()
            var buffer = [UInt8](repeating: 0, count: size)
            // No socket pair holds more.
            for _ in 0..<100_000 {
                let result = try read(&buffer)
                guard case .bytes(let count) = result else {
                    hasEnded = result == .end || result == .truncated
                    return
                }
                if count == 0 || count > size { fatalError("\(count) bytes of \(size)") }
                received += buffer.prefix(count)
            }
            fatalError("it reads without an end")
        } catch {
            self.error = error
            if error.description.isEmpty { fatalError("no sentence") }
        }
    }

    private func read(_ buffer: inout [UInt8]) throws(TLSError) -> TLSEngine.ReadResult {
        var failure: TLSError?
        let result = buffer.withUnsafeMutableBytes { bytes -> TLSEngine.ReadResult in
            do throws(TLSError) { return try engine.read(into: bytes) } catch { failure = error }
            return .bytes(0)
        }
        if let failure { throw failure }
        return result
    }

    func write(_ bytes: [UInt8]) {
        do throws(TLSError) {
            var failure: TLSError?
            bytes.withUnsafeBytes { bytes in
                do throws(TLSError) { _ = try engine.write(bytes) } catch { failure = error }
            }
            if let failure { throw failure }
        } catch {
            self.error = self.error ?? error
        }
    }

    /// What it has sent.
    func take() -> [UInt8] {
        var all: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(other, &piece, piece.count, 0)
            guard count > 0 else { return all }
            all += piece.prefix(count)
        }
    }

    func give(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { send(other, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    func endInput() { shutdown(other, Int32(SHUT_WR)) }

    /// It has failed for good, or says why it goes on.
    func check() {
        guard let error else { return }
        do throws(TLSError) {
            if !isSecure { _ = try engine.handshake() }
        } catch let later {
            if later != error { fatalError("\(error) has become \(later)") }
            return
        }
        if !isSecure { fatalError("\(error) was left") }
    }
}

/// Bytes that were not encrypted.
private func hearStranger(_ bytes: [UInt8], settings: TLSSettings, pieces: UInt8) {
    let end = TLSEnd(settings)
    var rest = bytes[...]
    let length = pieces == 0 ? bytes.count : Int(pieces)
    end.step(size: 100)
    while !rest.isEmpty {
        end.give(Array(rest.prefix(length)))
        rest = rest.dropFirst(max(1, length))
        end.step(size: 100)
        _ = end.take()
    }
    end.endInput()
    end.step(size: 100)
    if end.isSecure { fatalError("a stranger was trusted") }
    if end.error == nil { fatalError("it waits for a peer that has gone") }
    end.check()
}

/// A client and a server, and an attacker between them, which changes what they send: four bytes for a change, which are how
/// many bytes pass before it, what is done, and with what.
private func talkThroughMeddler(_ changes: [UInt8], _ version: TLSSettings.Version) {
    let client = TLSEnd(TLSPeers.client(version)), server = TLSEnd(TLSPeers.server(version))
    var plan = changes[...]
    var untilChange = 0
    var change: (kind: UInt8, value: UInt8)?
    func nextChange() {
        guard plan.count >= 4 else {
            change = nil
            return
        }
        let word = Array(plan.prefix(4))
        plan = plan.dropFirst(4)
        untilChange = Int(word[0]) << 4 | Int(word[1] & 15)
        change = (word[2], word[3])
    }
    func meddle(_ bytes: [UInt8]) -> [UInt8] {
        var changed: [UInt8] = []
        for byte in bytes {
            guard let now = change, untilChange == 0 else {
                untilChange -= change == nil ? 0 : 1
                changed.append(byte)
                continue
            }
            switch now.kind & 7 {
            case 0, 1: changed.append(byte ^ now.value)
            case 2: break
            case 3: changed += [byte, byte]
            case 4: changed += [now.value, byte]
            case 5: changed += [UInt8](repeating: now.value, count: Int(now.kind >> 3) * 8)
            case 6: changed += changed.suffix(Int(now.value)) + [byte]
            // A record of its own: an alert, or a piece of a handshake.
            default: changed += [now.value, 3, 3, 0, 2, now.kind >> 3, now.value, byte]
            }
            nextChange()
        }
        return changed
    }
    nextChange()
    let said = [UInt8](0..<200) + [UInt8](repeating: 7, count: 20_000)
    var hasSaid = (client: false, server: false)
    for turn in 0..<40 {
        let size = turn % 2 == 0 ? 100 : 30_000
        client.step(size: size)
        server.give(meddle(client.take()))
        server.step(size: size)
        client.give(meddle(server.take()))
        if client.isSecure, !hasSaid.client { (hasSaid.client, _) = (true, client.write(said)) }
        if server.isSecure, !hasSaid.server { (hasSaid.server, _) = (true, server.write(said)) }
        if turn == 30 {
            client.engine.shutdown()
            server.engine.shutdown()
        }
    }
    for (end, name) in [(client, "client"), (server, "server")] {
        if !said.starts(with: end.received) { fatalError("the \(name) has read what was not said") }
        end.endInput()
        end.step(size: 1_000)
        if end.error == nil, !end.hasEnded { fatalError("the \(name) waits for a peer that has gone") }
        end.check()
    }
}

/// What a peer shows, or a file holds.
private func readCertificates(_ bytes: [UInt8]) {
    if let certificate = TLSCertificate(derRepresentation: Data(bytes)) {
        if certificate.subject.utf8.count > 10_000 || certificate.names.count > 100 { fatalError("no limit") }
        _ = (certificate.publicKeyHash, certificate.pemRepresentation, certificate.description)
        guard TLSCertificate.certificates(inPEM: certificate.pemRepresentation) == [certificate] else {
            fatalError("another one by way of PEM")
        }
    }
    let text = String(decoding: bytes, as: UTF8.self)
    _ = TLSCertificate.certificates(inPEM: text)
    _ = try? TLSIdentity(chain: text, password: "")
    _ = try? TLSIdentity(pkcs12: Data(bytes), password: "")
}

import CFuzzer
import Foundation

/// What can be fuzzed, by the name that RONDO_FUZZ has.
///
/// An input must not trap, hang or grow; and a reader gives the same result however its bytes are divided.
enum Subject: String, CaseIterable {
    case response, multipart, content, cookies, challenges, cache, redirects, parameters, proxies, trace, tls,
        stored, websocket, port

    static let chosen: Subject = {
        let name = ProcessInfo.processInfo.environment["RONDO_FUZZ"] ?? "response"
        guard let subject = Subject(rawValue: name) else {
            let names = allCases.map(\.rawValue).joined(separator: ", ")
            let sentence = "There is no subject \(name). SUBJECT is one of \(names).\n"
            FileHandle.standardError.write(Data(sentence.utf8))
            // Nothing was found: libFuzzer is not to keep an input for it.
            _exit(2)
        }
        return subject
    }()

    func take(_ bytes: [UInt8]) {
        switch self {
        case .response: compare(bytes) { readResponse($0, in: $1, toHead: $2 & 1 != 0) }
        case .multipart: compare(bytes) { bytes, cuts, _ in readParts(bytes, in: cuts) }
        case .content: compare(bytes) { readContent($0, in: $1, kind: $2) }
        case .cookies: readCookies(Self.lines(bytes))
        case .challenges: readChallenges(Self.lines(bytes))
        case .cache: readCacheFields(Self.lines(bytes))
        case .redirects: readLocations(Self.lines(bytes))
        case .parameters: readParameters(Self.lines(bytes))
        case .proxies: compare(bytes) { readProxyAnswer($0, in: $1, kind: $2) }
        case .trace: readTrace(bytes)
        case .tls: readTLS(bytes)
        case .stored: readStored(bytes)
        case .port: compare(bytes) { bytes, cuts, _ in readPortMessages(bytes, in: cuts) }
        case .websocket:
            compare(bytes) { readWebSocket($0, in: $1, kind: $2) }
            readWebSocketHandshake(Self.lines(bytes))
        }
    }

    /// The first byte says how the rest is cut.
    private func compare(_ bytes: [UInt8], _ read: ([UInt8], [Int], UInt8) -> Report) {
        guard let first = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        let whole = read(rest, [rest.count], first)
        let cut = read(rest, [Int(first >> 1 & 7) + 1, 1, Int(first >> 4) + 1], first)
        if whole != cut { fatalError("whole: \(whole)\ncut: \(cut)") }
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}

/// What libFuzzer calls, again and again. The bytes are its own, and copied.
@_cdecl("LLVMFuzzerTestOneInput")
func takeInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Subject.chosen.take(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// The package manager wants a main of the program's own; libFuzzer's is a call away.
@main enum Fuzzer {
    static func main() {
        var (count, arguments) = (CommandLine.argc, CommandLine.unsafeArgv)
        exit(LLVMFuzzerRunDriver(&count, &arguments, takeInput))
    }
}

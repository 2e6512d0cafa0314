import Foundation
import RondoHTTP

/// What a reader has said of its input, so that two readings can be compared.
struct Report: Equatable {
    var events: [String] = []
    var body: [UInt8] = []
}

/// Bytes that are handed out in pieces of these lengths, over and over.
struct Pieces {
    private var rest: ArraySlice<UInt8>
    private let lengths: [Int]
    private var index = 0
    private var hasEnded = false

    init(_ bytes: [UInt8], in lengths: [Int]) {
        rest = bytes[...]
        self.lengths = lengths
    }

    /// Nil at the end, once: who wants more afterwards would wait for ever.
    mutating func next() -> ArraySlice<UInt8>? {
        guard !rest.isEmpty else {
            if hasEnded { fatalError("more is wanted after the end") }
            hasEnded = true
            return nil
        }
        defer { index += 1 }
        let piece = rest.prefix(max(1, lengths[index % lengths.count]))
        rest = rest.dropFirst(piece.count)
        return piece
    }
}

func readResponse(_ bytes: [UInt8], in lengths: [Int], toHead: Bool) -> Report {
    var (codec, report) = (HTTP1Codec(), Report())
    var pieces = Pieces(bytes, in: lengths)
    do {
        var request: [UInt8] = []
        let fields = HeaderFields([("Host", "a")])
        let head = RequestHead(method: toHead ? "HEAD" : "GET", target: "/", fields: fields)
        try codec.send(head: head, body: .none, into: &request)
        try codec.sendEnd(into: &request)
        var (input, consumed): ([UInt8], Int) = ([], 0)
        while true {
            let event = try input.withUnsafeBytes { try codec.nextEvent(from: $0, consumed: &consumed) }
            switch event {
            case .needMoreData:
                if consumed < input.count { fatalError("more is wanted, and not all was read") }
                let piece = pieces.next()
                if piece == nil { codec.receiveEnd() }
                (input, consumed) = (Array(piece ?? []), 0)
            case .body(let range):
                if range.isEmpty { fatalError("an empty piece") }
                report.body += input[range]
            case .informational(let head): report.events.append("\(head.status) \(head.fields)")
            case .response(let head, let length):
                report.events.append("\(head.status) \(head.fields) \(length ?? -1)")
            case .trailers(let fields): report.events.append("\(fields)")
            case .end, .paused, .closed, .switchedProtocol:
                report.events.append("end")
                return report
            }
        }
    } catch {
        report.events.append("\(error)")
        return report
    }
}

func readParts(_ bytes: [UInt8], in lengths: [Int]) -> Report {
    var (reader, report) = (MultipartReader(boundary: "b"), Report())
    var pieces = Pieces(bytes, in: lengths)
    do {
        while true {
            switch try reader.next() {
            case .needMoreData:
                if let piece = pieces.next() { reader.receive(piece) } else { reader.receiveEnd() }
            case .part(let fields): report.events.append("\(report.body.count) \(fields)")
            case .data(let data): report.body += data
            case .partEnd: report.events.append("\(report.body.count) end")
            case .end: return report
            }
        }
    } catch {
        report.events.append("\(error)")
        return report
    }
}

/// - Parameter kind: The codings, two bits each.
func readContent(_ bytes: [UInt8], in lengths: [Int], kind: UInt8) -> Report {
    var codings = [ContentCoding.allCases[Int(kind & 3)]]
    if kind & 4 != 0 { codings.append(ContentCoding.allCases[Int(kind >> 3 & 3)]) }
    var limits = ContentLimits()
    limits.maximumSize = 1 << 20
    var (report, pieces) = (Report(), Pieces(bytes, in: lengths))
    do {
        let decoder = try ContentDecoder(codings, limits: limits)
        while true {
            switch try decoder.next() {
            case .needMoreData:
                if let piece = pieces.next() { decoder.receive(Data(piece)) } else { decoder.receiveEnd() }
            case .data(let data):
                report.body += data
                if report.body.count > limits.maximumSize { fatalError("more than the limit") }
            case .end: return report
            }
        }
    } catch {
        // How much comes out before it depends on the cuts.
        return Report(events: ["failed"])
    }
}

import Foundation
import RondoStreams

/// Messages of a peer of a socket port.
func readPortMessages(_ bytes: [UInt8], in lengths: [Int]) -> Report {
    let maximum = 4_096
    var (report, pieces, reader) = (Report(), Pieces(bytes, in: lengths), WireReader())
    while let piece = pieces.next() {
        piece.withUnsafeBytes { reader.receive($0) }
        do {
            while let message = try reader.next(maximum: maximum) { report.events.append("\(message)") }
        } catch {
            if reader.count != 0 { fatalError("it keeps \(reader.count) bytes after \(error)") }
            if (try? reader.next(maximum: maximum)) != nil { fatalError("it goes on after \(error)") }
            report.events.append("\(error)")
            return report
        }
        if reader.count > maximum { fatalError("\(reader.count) bytes wait for a message") }
    }
    return report
}

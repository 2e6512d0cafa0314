import RondoLab
import RondoTrace

/// A file as a recording, and all that is made of one.
///
/// - Parameter bytes: Without the word at the beginning of the file.
func readTrace(_ bytes: [UInt8]) {
    let file = TraceEncoder.magic + bytes
    guard let recording = try? Recording(file: file) else { return }
    _ = recording.chromeTrace
    _ = recording.pageData
    let terminal = Terminal(descriptor: 2, isTerminal: false, environment: ["LANG": "C.UTF-8"])
    _ = TextTimeline(recording, terminal: terminal, width: 100).lines
    // What was read once reads the same when it was written anew.
    guard let again = try? Recording(file: recording.file) else { fatalError("it cannot be read again") }
    if again.tables != recording.tables { fatalError("other tables: \(again.tables)") }
    if again.records != recording.records { fatalError("other records: \(again.records)") }
    if again != recording { fatalError("another time") }
    // What breaks off is a recording, as far as it goes.
    for length in [file.count / 2, file.count - 1] where length >= TraceEncoder.magic.count {
        guard (try? Recording(file: Array(file.prefix(length)))) != nil else {
            fatalError("the first \(length) bytes are none")
        }
    }
}

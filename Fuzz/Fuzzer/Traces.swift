import RondoLab
import RondoTrace

/// A file as a recording, and all that is made of one.
///
/// - Parameter bytes: Without the word at the beginning of the file.
func readTrace(_ bytes: [UInt8]) {
    let file = TraceEncoder.magic + bytes
    readPair(bytes)
    guard let recording = try? Recording(file: file) else { return }
    view(recording)
    // What breaks off is a recording, as far as it goes.
    for length in [file.count / 2, file.count - 1] where length >= TraceEncoder.magic.count {
        guard (try? Recording(file: Array(file.prefix(length)))) != nil else {
            fatalError("the first \(length) bytes are none")
        }
    }
}

/// The input in two files, of which the second continues the first, with its tables or with others.
private func readPair(_ bytes: [UInt8]) {
    let half = bytes.count / 2
    let moment: Int64 = 1 << 20
    var encoder = TraceEncoder()
    let end = encoder.frames(TraceTables(), [], until: moment)
    let earlier: [UInt8] = TraceEncoder.head(began: 0) + bytes.prefix(half) + end
    var places = TableTransfer.Places()
    for place in 1...3 {
        places.loops[place] = place
        places.threads[place] = 4 - place
    }
    for kept in [[], TraceEncoder.kept(places)] {
        let later: [UInt8] = TraceEncoder.head(began: moment) + kept + bytes.dropFirst(half)
        if let recording = try? Recording(file: later, continuing: earlier) { view(recording) }
    }
}

private func view(_ recording: Recording) {
    _ = recording.chromeTrace
    _ = recording.pageData
    let terminal = Terminal(descriptor: 2, isTerminal: false, environment: ["LANG": "C.UTF-8"])
    _ = TextTimeline(recording, terminal: terminal, width: 100).lines
    // What was read once reads the same when it was written anew.
    guard let again = try? Recording(file: recording.file) else { fatalError("it cannot be read again") }
    if again.tables != recording.tables { fatalError("other tables: \(again.tables)") }
    if again.records != recording.records { fatalError("other records: \(again.records)") }
    if again != recording { fatalError("another time") }
}

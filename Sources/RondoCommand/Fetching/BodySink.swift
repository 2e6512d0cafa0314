import Rondo
import RondoLab

/// Takes the body as it comes and keeps none of it. On the loop's thread only.
///
/// A file is written by its descriptor and not by an `OutputStream`: the errno is all that is wanted of an
/// error, and Foundation's file streams write lines of their own to standard error when they fail.
final class BodySink {
    private let output: FetchPlan.Output
    private var descriptor: Int32?

    init(_ output: FetchPlan.Output) {
        self.output = output
    }

    /// Makes the file. Called when an answer is there, so that a load that fails before leaves none behind.
    func open() throws(FetchFailure) {
        guard descriptor == nil else { return }
        switch output {
        case .nowhere: break
        case .standardOutput: descriptor = Terminal.standardOutput.descriptor
        case .file(let path):
            // A FIFO without a reader is an error, and is not waited for.
            let opened = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0o666)
            guard opened >= 0 else { throw failure(errno, .cannotCreateFile) }
            _ = fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK)
            descriptor = opened
        }
    }

    /// What is written is looked at by a person, as it seems.
    var isTerminal: Bool {
        if case .standardOutput = output { Terminal.standardOutput.isTerminal } else { false }
    }

    func write(_ data: Data) throws(FetchFailure) {
        guard let descriptor else { return }
        if output == .standardOutput(evenBinary: false), Terminal.standardOutput.isTerminal, data.contains(0)
        {
            throw FetchFailure(
                .cannotWriteToFile,
                "the body is binary and would spoil the terminal: use -o FILE, or -o - to print it anyway")
        }
        let code = data.withUnsafeBytes { writeAll(descriptor, $0) }
        if code != 0 { throw failure(code, .cannotWriteToFile) }
    }

    /// Some file systems tell only now that what was written found no room.
    func close() throws(FetchFailure) {
        guard case .file = output, let descriptor else { return }
        self.descriptor = nil
        if Glibc.close(descriptor) != 0 { throw failure(errno, .cannotCloseFile) }
    }

    private func failure(_ code: Int32, _ kind: URLError.Code) -> FetchFailure {
        let place = if case .file(let path) = output { path } else { "standard output" }
        return FetchFailure(kind, "cannot write to \(place): \(String(cString: strerror(code)))")
    }
}

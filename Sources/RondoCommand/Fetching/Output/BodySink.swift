import Rondo
import RondoLab

/// Writes the output of a transfer as it arrives, and keeps none of it. On the loop's thread only.
///
/// It writes to a file's descriptor instead of an `OutputStream`: only the errno of an error is needed, and
/// Foundation's file streams print messages of their own to standard error when they fail.
final class BodySink {
    enum Place: Equatable, Sendable {
        case nowhere
        /// Binary data is written to a terminal only on request, by `-o -`.
        case standardOutput(evenBinary: Bool)
        case file(String, Existing)
    }

    /// The treatment of a file that exists.
    enum Existing: Equatable, Sendable {
        case replaced, appended, refused
        /// Keep the file and write to another name.
        case kept
    }

    /// The most other names that are tried if a file of the name exists.
    private static let maximumNames = 100

    private(set) var place: Place
    private let createsFolders: Bool
    private var descriptor: Int32?
    /// The regular file that was made or emptied for this transfer, and that holds nothing else.
    private var ownFile: String?
    /// The position at which an attempt began to write.
    private var start: off_t = 0

    init(_ place: Place, createsFolders: Bool = false) {
        self.place = place
        self.createsFolders = createsFolders
    }

    /// The file's name; nil for standard output.
    var path: String? { if case .file(let path, _) = place { path } else { nil } }

    var isOpen: Bool { descriptor != nil }

    /// Changes the file, before anything is written.
    func rename(to path: String, _ existing: Existing) { if !isOpen { place = .file(path, existing) } }

    /// Creates the file. Called when there is something to write, so that a load that fails before leaves no
    /// file.
    func open() throws(FetchFailure) {
        guard descriptor == nil else { return }
        switch place {
        case .nowhere: break
        case .standardOutput: descriptor = Terminal.standardOutput.descriptor
        case .file(let path, let existing):
            if createsFolders { try makeFolders(path) }
            try open(path, existing)
        }
    }

    private func open(_ path: String, _ existing: Existing) throws(FetchFailure) {
        let how =
            switch existing {
            case .replaced: O_TRUNC
            case .appended: O_APPEND
            case .refused, .kept: O_EXCL
            }
        // Opening a FIFO without a reader fails at once instead of blocking.
        var opened = Glibc.open(path, O_WRONLY | O_CREAT | how | O_CLOEXEC | O_NONBLOCK, 0o666)
        var code = errno
        var number = 1
        while opened < 0, code == EEXIST, existing == .kept, number <= Self.maximumNames {
            let name = "\(path).\(number)"
            opened = Glibc.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0o666)
            code = errno
            if opened >= 0 { place = .file(name, existing) }
            number += 1
        }
        guard opened >= 0 else { throw failure(code, .cannotCreateFile) }
        _ = fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK)
        var status = stat()
        if existing != .appended, fstat(opened, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            ownFile = self.path
        }
        start = lseek(opened, 0, SEEK_END)
        descriptor = opened
    }

    private func makeFolders(_ path: String) throws(FetchFailure) {
        let folder = OutputFile.folder(of: path)
        var made = folder.hasPrefix("/") ? "/" : ""
        for part in folder.split(separator: "/") {
            made += (made.isEmpty || made.hasSuffix("/") ? "" : "/") + part
            if mkdir(made, 0o750) != 0, errno != EEXIST { throw failure(errno, .cannotCreateFile) }
        }
    }

    /// True if the output is a terminal.
    var isTerminal: Bool {
        if case .standardOutput = place { Terminal.standardOutput.isTerminal } else { false }
    }

    func write(_ data: Data) throws(FetchFailure) {
        try open()
        guard let descriptor else { return }
        if place == .standardOutput(evenBinary: false), Terminal.standardOutput.isTerminal, data.contains(0) {
            throw FetchFailure(
                .cannotWriteToFile,
                "the body is binary and would spoil the terminal: use -o FILE, or -o - to print it anyway",
                status: .cannotWrite)
        }
        let code = data.withUnsafeBytes { writeAll(descriptor, $0) }
        if code != 0 { throw failure(code, .cannotWriteToFile) }
    }

    /// Removes the output of an attempt from a file, before the next attempt.
    func restart() {
        guard case .file = place, let descriptor else { return }
        if ftruncate(descriptor, start) == 0 { lseek(descriptor, start, SEEK_SET) }
    }

    /// Removes the file, unless it has anything of before the transfer, or is a device or a pipe.
    func remove() {
        if let ownFile { unlink(ownFile) }
    }

    /// Some file systems report only at closing that there was no room.
    func close() throws(FetchFailure) {
        guard case .file = place, let descriptor else { return }
        self.descriptor = nil
        if Glibc.close(descriptor) != 0 { throw failure(errno, .cannotCloseFile) }
    }

    private func failure(_ code: Int32, _ kind: URLError.Code) -> FetchFailure {
        let place = path ?? "standard output"
        if path == nil, code == EBADF {
            return FetchFailure(
                kind, "cannot write to standard output, which is closed", status: .cannotWrite)
        }
        return FetchFailure(
            kind, "cannot write to \(place): \(String(cString: strerror(code)))", status: .cannotWrite)
    }
}

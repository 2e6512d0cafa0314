import Rondo
import RondoLab

/// Where a command writes what it has made.
enum OutputFile {
    /// Writes all of `text` to the file at `path`, in place of what was there; `-` is standard output.
    static func write(_ text: String, to path: String) throws {
        if path == "-" {
            Terminal.standardOutput.write(text)
            return
        }
        try write(Array(text.utf8), to: path)
    }

    /// As above; bytes are for files only.
    static func write(_ bytes: [UInt8], to path: String) throws {
        do {
            try Data(bytes).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            throw CommandFailure("cannot write \(path): \(error.localizedDescription)")
        }
    }
}

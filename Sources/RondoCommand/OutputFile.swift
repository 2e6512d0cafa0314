import Rondo
import RondoLab

/// Writes the output of a command to a file.
enum OutputFile {
    /// Throws if one of `paths` cannot be written, so that a command does no work whose result would be lost.
    /// Nil and `-`, standard output, can always be written.
    static func check(_ paths: String?...) throws {
        for path in paths.compactMap(\.self) where path != "-" { try check(path) }
    }

    private static func check(_ path: String) throws {
        if path.isEmpty { throw CommandFailure.usage("a file to write to has an empty name") }
        var status = stat()
        let exists = stat(path, &status) == 0
        if exists, status.st_mode & S_IFMT == S_IFDIR {
            throw CommandFailure("cannot write \(path): it is a folder")
        }
        let isReplaced = !exists || status.st_mode & S_IFMT == S_IFREG
        let written = isReplaced ? folder(of: path) : path
        guard access(written, isReplaced ? W_OK | X_OK : W_OK) != 0 else { return }
        let reason = String(cString: strerror(errno))
        throw CommandFailure("cannot write \(path): \(isReplaced ? "\(written): " : "")\(reason)")
    }

    /// The path of the folder that has the file at `path`.
    ///
    /// `NSString.deletingLastPathComponent` traps on a path of one character.
    static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Writes all of `text` to the file at `path` and replaces its content; `-` is standard output.
    static func write(_ text: String, to path: String) throws {
        var text = text
        try text.withUTF8 { try write(UnsafeRawBufferPointer($0), to: path) }
    }

    /// Writes bytes as above.
    static func write(_ bytes: [UInt8], to path: String) throws {
        try bytes.withUnsafeBytes { try write($0, to: path) }
    }

    /// Writes the bytes without a copy: a recording may have hundreds of millions.
    private static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws {
        if path == "-" {
            let code = writeAll(STDOUT_FILENO, bytes)
            guard code != 0 else { return }
            throw CommandFailure("cannot write to standard output: \(String(cString: strerror(code)))")
        }
        var status = stat()
        let isDevice = stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
        // The memory is the caller's, and outlives the data.
        let data = bytes.baseAddress.map {
            Data(
                bytesNoCopy: UnsafeMutableRawPointer(mutating: $0), count: bytes.count, deallocator: .none)
        }
        do {
            // A pipe, /dev/null or other special file is written to and not replaced.
            try (data ?? Data()).write(to: URL(fileURLWithPath: path), options: isDevice ? [] : .atomic)
        } catch {
            throw CommandFailure("cannot write \(path): \(error.localizedDescription)")
        }
    }
}

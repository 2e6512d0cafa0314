import Rondo
import RondoLab

/// `rondo serve` as a process that ends with this one: its standard input is a pipe from this process.
final class ServerProcess {
    let url: URL
    private let process = Process()
    private let input = Pipe()

    /// Starts a server on a free port, and waits until it listens.
    init(size: Int, rate: Int) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [
            "serve", "--quiet", "--size", "\(size)", "--rate", "\(rate)", "--until-stdin-closes",
        ]
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            throw CommandFailure("cannot start the server: \(error.localizedDescription)")
        }
        guard let url = Self.address(from: output.fileHandleForReading) else {
            process.terminate()
            throw CommandFailure("the server did not say where it listens")
        }
        self.url = url
    }

    deinit {
        stop()
    }

    func stop() {
        try? input.fileHandleForWriting.close()  // Closed already: then there is nothing to do.
    }

    /// The URL in the server's first line, `listening on URL`.
    private static func address(from output: FileHandle) -> URL? {
        var text = ""
        while !text.contains("\n") {
            let data = output.availableData
            guard !data.isEmpty else { return nil }
            text += String(decoding: data, as: UTF8.self)
        }
        let words = text.prefix { $0 != "\n" }.split(separator: " ")
        return words.last.flatMap { URL(string: String($0)) }
    }
}

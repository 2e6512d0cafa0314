import Rondo

/// The destination of a job's output, found from its URL and options; a value.
struct OutputPlan {
    private enum Target {
        case nowhere
        case standardOutput(evenBinary: Bool)
        case file(String)
    }

    private let target: Target
    let createsFolders: Bool
    private let overwrites: Bool

    /// - Throws: `FetchFailure` if the URL contains no name.
    init(_ job: TransferJob, url: FetchURL, printsEvents: Bool) throws(FetchFailure) {
        createsFolders = job.operation.createsFolders
        overwrites = job.operation.overwrites ?? true
        switch job.output {
        case .file("-"): target = printsEvents ? .nowhere : .standardOutput(evenBinary: true)
        case .file(let pattern):
            target = .file(Self.inFolder(URLGlob.name(pattern, job.matches), job.operation))
        case .remoteName:
            guard let name = url.lastName else {
                throw FetchFailure(
                    .cannotCreateFile, "-O: the path of the URL ends with no file name; use -o FILE",
                    status: .cannotWrite)
            }
            target = .file(Self.inFolder(name, job.operation))
        case nil: target = printsEvents ? .nowhere : .standardOutput(evenBinary: false)
        }
    }

    static func inFolder(_ name: String, _ operation: FetchOperation) -> String {
        guard let folder = operation.outputFolder, !folder.isEmpty else { return name }
        return folder.hasSuffix("/") ? folder + name : folder + "/" + name
    }

    /// The position at which the response is to begin.
    func resumptionOffset(_ operation: FetchOperation) throws(FetchFailure) -> Int64 {
        switch operation.resumption {
        case nil: return 0
        case .offset(let offset): return offset
        case .file:
            guard case .file(let path) = target else { return 0 }
            var status = stat()
            return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : 0
        }
    }

    func place(appending: Bool) -> BodySink.Place {
        switch target {
        case .nowhere: .nowhere
        case .standardOutput(let evenBinary): .standardOutput(evenBinary: evenBinary)
        case .file(let path): .file(path, appending ? .appended : overwrites ? .replaced : .kept)
        }
    }
}

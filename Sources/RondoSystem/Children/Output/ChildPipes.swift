internal import CRondoSystem
internal import Glibc
internal import RondoCore
internal import RondoStreams

/// The pipes between a child and its parent, and the descriptors for the child.
struct ChildPipes {
    /// By the number in the child.
    private(set) var descriptors: [Int32: Int32] = [:]
    private(set) var input: RondoStreams.OutputStream?
    private(set) var output: RondoStreams.InputStream?
    private(set) var errorOutput: RondoStreams.InputStream?
    private(set) var outputCollector: OutputCollector?
    private(set) var errorCollector: OutputCollector?
    let tracker = OutputTracker()
    /// The number of outputs that pipes read.
    private(set) var outputCount = 0
    /// The child's ends, which the parent closes once the child has inherited them.
    private var childEnds: [Int32] = []
    private let name: String

    /// - Throws: If a descriptor is given twice, or none is left; none stays open then.
    init(_ configuration: Child.Configuration) throws(ChildError) {
        let standard = STDIN_FILENO...STDERR_FILENO
        guard !configuration.descriptors.keys.contains(where: standard.contains) else {
            throw ChildError(
                .configuration, systemCode: EINVAL, path: configuration.program,
                "the descriptors 0 to 2 of a child are its standardInput, standardOutput and standardError")
        }
        name = (configuration.program as NSString).lastPathComponent
        descriptors = configuration.descriptors
        do throws(SystemError) {
            try makeInput(configuration.standardInput)
            try makeOutput(configuration.standardOutput, STDOUT_FILENO)
            try makeOutput(configuration.standardError, STDERR_FILENO)
        } catch {
            closeChildEnds()
            throw ChildError(
                .system, systemCode: error.code, path: configuration.program,
                "no pipe for \(configuration.program) (\(error.call))")
        }
    }

    func closeChildEnds() {
        for descriptor in childEnds { close(descriptor) }
    }

    private mutating func makeInput(_ input: Child.Input) throws(SystemError) {
        switch input.kind {
        case .inherited: descriptors[STDIN_FILENO] = STDIN_FILENO
        case .none: descriptors[STDIN_FILENO] = try openNull()
        case .descriptor(let number): descriptors[STDIN_FILENO] = number
        case .stream:
            let (reading, writing) = try makePipe(parentReads: false)
            descriptors[STDIN_FILENO] = reading
            self.input = RondoStreams.OutputStream(pipe: writing, name: "standard input of \(name)")
        }
    }

    private mutating func makeOutput(_ output: Child.Output, _ number: Int32) throws(SystemError) {
        switch output.kind {
        case .inherited: descriptors[number] = number
        case .none: descriptors[number] = try openNull()
        case .descriptor(let other): descriptors[number] = other
        case .sameAsOutput: descriptors[number] = descriptors[STDOUT_FILENO] ?? STDOUT_FILENO
        case .stream:
            let (reading, writing) = try makePipe(parentReads: true)
            descriptors[number] = writing
            outputCount += 1
            let stream = RondoStreams.InputStream(
                pipe: reading, name: "standard \(number == STDOUT_FILENO ? "output" : "error") of \(name)",
                ended: { [tracker] in tracker.outputHasEnded() })
            if number == STDOUT_FILENO { self.output = stream } else { errorOutput = stream }
        case .collected(let limit):
            let (reading, writing) = try makePipe(parentReads: true)
            descriptors[number] = writing
            outputCount += 1
            let collector = OutputCollector(reading, limit: limit, tracker: tracker)
            if number == STDOUT_FILENO { outputCollector = collector } else { errorCollector = collector }
        }
    }

    /// Makes a pipe whose ends are close-on-exec from the beginning, so that no other child inherits one
    /// (rule CH-10). The parent's end is non-blocking.
    private mutating func makePipe(parentReads: Bool) throws(SystemError) -> (reading: Int32, writing: Int32)
    {
        var ends: [Int32] = [-1, -1]
        _ = try systemCall("pipe2") { rondo_pipe(&ends) }
        let (own, childs) = parentReads ? (ends[0], ends[1]) : (ends[1], ends[0])
        do throws(SystemError) {
            _ = try systemCall("fcntl") { rondo_set_nonblocking(own) }
        } catch {
            close(own)
            close(childs)
            throw error
        }
        childEnds.append(childs)
        return (ends[0], ends[1])
    }

    private mutating func openNull() throws(SystemError) -> Int32 {
        let descriptor = try systemCall("open") { open("/dev/null", O_RDWR | O_CLOEXEC) }
        childEnds.append(descriptor)
        return descriptor
    }
}

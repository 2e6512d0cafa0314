// Turns a configuration into a child: lays out the data for the C code of CRondoSystem in C's memory, and
// frees them after the call.

internal import CRondoSystem
internal import Glibc
internal import RondoCore

/// A child's configuration with chosen descriptors, ready to be spawned.
struct Spawner: Sendable {
    var program: String
    var arguments: [String]
    /// The variables as "NAME=value"; nil means the parent's variables, unchanged.
    var variables: [[UInt8]]?
    /// The directories for a program without a slash in its name; nil means those of the system.
    var searchPath: String?
    var workingDirectory: String?
    /// The child's descriptors by number, with the descriptors of the parent that they are copied from; -1
    /// means closed in the child.
    var descriptors: [Int32: Int32]
    var group: rondo_spawn_group
    var diesWithParent = false
    var ignoredSignals: Set<Int32> = []

    /// The number and the pidfd of a child, or the step that failed with its errno.
    private enum Outcome: Sendable {
        case spawned(Int32, pidfd: Int32)
        case failed(rondo_spawn_step, Int32)
    }

    /// Starts the program. It runs, or has ended already, when this returns.
    func spawn() throws(ChildError) -> ChildHandle {
        try check()
        let (reaper, outcome): (Reaper, Outcome)
        do throws(SystemError) {
            reaper = try Reaper.existing()
            outcome = diesWithParent ? try SpawningThread.run { call() } : call()
        } catch {
            throw ChildError(
                .system, systemCode: error.code, path: program,
                "no child can be made for \(program) (\(error.call))")
        }
        switch outcome {
        case .spawned(let number, let pidfd):
            return ChildHandle(
                number, pidfd: pidfd, name: program, leadsGroup: group != rondo_spawn_group_parents,
                reaper: reaper)
        case .failed(let step, let code):
            throw failure(step, code)
        }
    }

    // MARK: - Validation

    private func check() throws(ChildError) {
        let strings = [program, workingDirectory ?? ""] + arguments
        guard !strings.contains(where: { $0.utf8.contains(0) }), variables?.joined().contains(0) != true
        else {
            throw ChildError(
                .configuration, systemCode: EINVAL, path: program,
                "a NUL ends a string in C: \(program) cannot be given one in an argument, a variable or a path"
            )
        }
        guard !program.isEmpty else {
            throw ChildError(.program, systemCode: ENOENT, path: program, "the program's name is empty")
        }
        guard descriptors.keys.allSatisfy({ $0 >= 0 }), ignoredSignals.allSatisfy({ 1...64 ~= $0 }) else {
            throw ChildError(
                .configuration, systemCode: EINVAL, path: program,
                "a descriptor's number is 0 or more, a signal's 1 to 64")
        }
    }

    private func failure(_ step: rondo_spawn_step, _ code: Int32) -> ChildError {
        switch step {
        case rondo_spawn_step_directory:
            ChildError(
                .workingDirectory, systemCode: code, path: workingDirectory,
                "\(program) was not started in the directory \(workingDirectory ?? "")")
        case rondo_spawn_step_program:
            ChildError(.program, systemCode: code, path: program, "\(program) was not started")
        case rondo_spawn_step_descriptors:
            ChildError(
                .system, systemCode: code, path: program,
                "\(program) was not started: its descriptors could not be set up")
        default:
            ChildError(.system, systemCode: code, path: program, "no process for \(program)")
        }
    }

    // MARK: - The call

    private func call() -> Outcome {
        let targets = descriptors.keys.sorted()
        var sources = targets.map { descriptors[$0] ?? -1 }
        let argumentStrings = CStrings([program] + arguments)
        let paths = CStrings(candidates)
        let variables = variables.map(CStrings.init(bytes:))
        let directory = workingDirectory.flatMap { strdup($0) }
        defer { free(directory) }
        var pidfd: Int32 = -1
        var step = rondo_spawn_step_birth
        return withExtendedLifetime((argumentStrings, paths, variables)) {
            targets.withUnsafeBufferPointer { targets in
                sources.withUnsafeMutableBufferPointer { sources in
                    guard let targetStart = targets.baseAddress, let sourceStart = sources.baseAddress,
                        let environment = variables?.pointer ?? rondo_environment()
                    else { return .failed(step, EINVAL) }
                    var request = rondo_spawn(
                        paths: paths.constantPointer, arguments: argumentStrings.pointer,
                        environment: environment,
                        directory: directory, targets: targetStart, sources: sourceStart,
                        descriptor_count: Int32(targets.count), group: group,
                        dies_with_thread: diesWithParent ? 1 : 0,
                        ignored_signals: ignoredSignals.reduce(0) { $0 | 1 << UInt64($1 - 1) })
                    let number = rondo_spawn(&request, &pidfd, &step)
                    return number > 0 ? .spawned(number, pidfd: pidfd) : .failed(step, errno)
                }
            }
        }
    }

    /// The files that may be the program, in the order in which they are tried (rule CH-20).
    private var candidates: [String] {
        guard !program.contains("/") else { return [program] }
        // An empty entry means the working directory, as in a shell.
        return (searchPath ?? Self.standardPath).split(separator: ":", omittingEmptySubsequences: false).map {
            ($0.isEmpty ? "." : $0) + "/" + program
        }
    }

    /// The search path without PATH: that of `confstr(_CS_PATH)`.
    private static let standardPath = "/bin:/usr/bin"
}

/// An array of C strings that ends with NULL; freed with this object.
private final class CStrings {
    let pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    convenience init(_ strings: [String]) { self.init(bytes: strings.map { Array($0.utf8) }) }

    init(bytes strings: [[UInt8]]) {
        count = strings.count
        pointer = .allocate(capacity: count + 1)
        for (index, string) in strings.enumerated() {
            (pointer + index).initialize(to: strdup(string.map { CChar(bitPattern: $0) } + [0]))
        }
        (pointer + count).initialize(to: nil)
    }

    /// The same array as constant strings.
    var constantPointer: UnsafePointer<UnsafePointer<CChar>?> {
        // Safe: both pointer types have the same layout, and the C code does not write.
        UnsafeRawPointer(pointer).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
    }

    deinit {
        for index in 0..<count { free(pointer[index]) }
        pointer.deallocate()
    }
}

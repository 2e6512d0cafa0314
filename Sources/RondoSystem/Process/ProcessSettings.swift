internal import CRondoSystem
internal import Glibc
internal import RondoCore

/// The program, arguments and standard files of a `Process`.
///
/// `@unchecked Sendable`: a value behind the lock of its process. The standard files are Foundation's pipes
/// or file handles, and both classes are Sendable.
struct ProcessSettings: @unchecked Sendable {
    var executableURL: URL?
    var arguments: [String]?
    var environment: [String: String]?
    /// Nil or empty means the parent's directory at the start.
    var currentDirectory: String?
    var standardInput: Any? = FileHandle.standardInput
    var standardOutput: Any? = FileHandle.standardOutput
    var standardError: Any? = FileHandle.standardError
    var qualityOfService = QualityOfService.default

    /// The working directory of the child; nil means that of its parent.
    var workingDirectory: String? { currentDirectory.flatMap { $0.isEmpty ? nil : $0 } }

    /// The descriptors for the child, and the descriptor of `/dev/null` that was opened for them; the caller
    /// closes the latter.
    func descriptors() throws -> (descriptors: [Int32: Int32], toClose: Int32) {
        var null: Int32 = -1
        func number(of file: Any?, isInput: Bool) throws -> Int32 {
            switch file {
            case let pipe as Pipe:
                return (isInput ? pipe.fileHandleForReading : pipe.fileHandleForWriting).fileDescriptor
            case let handle as FileHandle where handle !== FileHandle.nullDevice:
                return handle.fileDescriptor
            default:
                if null < 0 { null = open("/dev/null", O_RDWR | O_CLOEXEC) }
                guard null >= 0 else { throw NSError.ofProcess(errno, path: "/dev/null") }
                return null
            }
        }
        do {
            let descriptors: [Int32: Int32] = [
                STDIN_FILENO: try number(of: standardInput, isInput: true),
                STDOUT_FILENO: try number(of: standardOutput, isInput: false),
                STDERR_FILENO: try number(of: standardError, isInput: false),
            ]
            // Foundation marks a closed handle by a negative descriptor.
            guard descriptors.values.allSatisfy({ $0 >= 0 }) else {
                throw NSError.ofProcess(EBADF, path: nil)
            }
            return (descriptors, null)
        } catch {
            if null >= 0 { close(null) }
            throw error
        }
    }

    /// Closes the child's ends of pipes in the parent (rule PR-17).
    func closeEndsOfChild() {
        (standardInput as? Pipe)?.fileHandleForReading.closeFile()
        (standardOutput as? Pipe)?.fileHandleForWriting.closeFile()
        (standardError as? Pipe)?.fileHandleForWriting.closeFile()
    }

    /// Starts the child. A path without a slash would be searched in PATH, so it gets a slash.
    func spawn() throws -> ChildHandle {
        let path = executableURL?.path ?? ""
        let (descriptors, null) = try descriptors()
        defer { if null >= 0 { close(null) } }
        let spawner = Spawner(
            program: path.contains("/") ? path : "./" + path, arguments: arguments ?? [],
            variables: environment.map { $0.map { Array("\($0)=\($1)".utf8) } },
            workingDirectory: workingDirectory, descriptors: descriptors, group: rondo_spawn_group_own)
        do throws(ChildError) {
            return try spawner.spawn()
        } catch {
            throw NSError.ofProcess(
                error.systemCode, path: error.path ?? path, description: error.description)
        }
    }
}

extension NSError {
    /// An error that Foundation's `Process` throws before it starts anything.
    static func ofProcess(_ code: CocoaError.Code, _ text: String) -> NSError {
        NSError(
            domain: NSCocoaErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text])
    }

    /// The error that Foundation's `Process` throws for an errno: in Cocoa's domain, with path and errno.
    static func ofProcess(_ code: Int32, path: String?, description: String? = nil) -> NSError {
        let cocoa: CocoaError.Code =
            switch code {
            case ENOENT, ENOTDIR: .fileReadNoSuchFile
            case EACCES, EPERM: isDirectory(path) ? .fileNoSuchFile : .fileReadNoPermission
            case ENAMETOOLONG: .fileReadInvalidFileName
            default: .fileReadUnknown
            }
        let reason = String(cString: strerror(code))
        var info: [String: Any] = [
            NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(code)),
            NSLocalizedDescriptionKey: description ?? (path.map { "\($0): \(reason)" } ?? reason),
        ]
        if let path { info[NSFilePathErrorKey] = path }
        return NSError(domain: NSCocoaErrorDomain, code: cocoa.rawValue, userInfo: info)
    }

    /// Foundation does not accept a folder as a program.
    private static func isDirectory(_ path: String?) -> Bool {
        var isDirectory: ObjCBool = false
        return path.map { FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory) } ?? false
            && isDirectory.boolValue
    }
}

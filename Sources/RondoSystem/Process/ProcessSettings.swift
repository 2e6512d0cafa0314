internal import RondoCore

/// What a `Process` is to run, and with what.
///
/// `@unchecked Sendable`: a value behind the lock of its process. The standard files are pipes and file handles of
/// Foundation's, which is `Sendable` itself in both cases.
struct ProcessSettings: @unchecked Sendable {
    var executableURL: URL?
    var arguments: [String]?
    var environment: [String: String]?
    /// Nil, or empty: the parent's at the start.
    var currentDirectory: String?
    var standardInput: Any? = FileHandle.standardInput
    var standardOutput: Any? = FileHandle.standardOutput
    var standardError: Any? = FileHandle.standardError
    var qualityOfService = QualityOfService.default

    /// The directory that the child enters; nil: it stays in its parent's.
    var workingDirectory: String? { currentDirectory.flatMap { $0.isEmpty ? nil : $0 } }

    /// The descriptors for the child, and the one of `/dev/null` that was opened for them, which the caller closes.
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
            // Foundation's mark of a handle that was closed.
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
}

extension NSError {
    /// The error that Foundation's `Process` throws for an errno: of Cocoa's domain, with the path and the errno in it.
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

    /// Foundation finds no program where a folder is.
    private static func isDirectory(_ path: String?) -> Bool {
        var isDirectory: ObjCBool = false
        return path.map { FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory) } ?? false
            && isDirectory.boolValue
    }
}

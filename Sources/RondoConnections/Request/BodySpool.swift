internal import RondoCore

/// A store for the bytes of a body that were sent, in case they have to be sent again (rule UC-40): in memory
/// while they are few, then in a file without a name, which the kernel removes when its descriptor is closed.
final class BodySpool {
    /// The maximum of bytes that are kept in memory.
    static let maximumInMemory = 256 * 1024
    /// The maximum of bytes that are kept at all. A longer body is sent, but cannot be sent again.
    static let maximum: Int64 = 64 << 30

    private(set) var count: Int64 = 0
    private var memory: [UInt8] = []
    private var descriptor: Int32 = -1

    deinit { if descriptor >= 0 { _ = close(descriptor) } }

    var isOnDisk: Bool { descriptor >= 0 }

    /// Appends `bytes` to those that are kept.
    ///
    /// - Throws: The error of the disk, or `EFBIG` beyond the maximum. Then the kept bytes are incomplete.
    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        guard count + Int64(bytes.count) <= Self.maximum else { throw SystemError("write", code: EFBIG) }
        if descriptor < 0, memory.count + bytes.count <= Self.maximumInMemory {
            memory.append(contentsOf: bytes)
        } else {
            if descriptor < 0 { try moveToDisk() }
            try write(bytes)
        }
        count += Int64(bytes.count)
    }

    /// Copies kept bytes, beginning at `offset`.
    ///
    /// - Returns: The number of bytes copied; 0 at the end.
    func read(at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        guard descriptor >= 0 else {
            let length = min(buffer.count, memory.count - Int(offset))
            memory.withUnsafeBytes { memory in
                let piece = memory[Int(offset)..<Int(offset) + length]
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
            }
            return length
        }
        let room = Int(min(Int64(buffer.count), count - offset))
        return try systemCall("pread") { pread(descriptor, buffer.baseAddress, room, off_t(offset)) }
    }

    private func moveToDisk() throws(SystemError) {
        descriptor = try Self.unnamedFile()
        let bytes = memory
        memory = []
        let failure = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try write(bytes) }
        }
        try failure.get()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest)
            let written = try systemCall("write") {
                Foundation.write(descriptor, piece.baseAddress, piece.count)
            }
            rest = rest.dropFirst(written)
        }
    }

    /// Opens a file without a name in the first of these folders in which one can be made: `chosen`, the
    /// value of `TMPDIR`; `/var/tmp`, which is meant for large temporary files; and `/tmp`, which is in
    /// memory on many systems.
    static func unnamedFile(
        chosen: String? = ProcessInfo.processInfo.environment["TMPDIR"]
    ) throws(SystemError) -> Int32 {
        for folder in [chosen ?? "", "/var/tmp"] where !folder.isEmpty {
            do throws(SystemError) {
                return try unnamedFile(in: folder)
            } catch {
                // In no other folder is there a descriptor either.
                if error.code == EMFILE || error.code == ENFILE { throw error }
            }
        }
        return try unnamedFile(in: "/tmp")
    }

    private static func unnamedFile(in folder: String) throws(SystemError) -> Int32 {
        let path = "\(folder)/rondo-body-\(UUID().uuidString)"
        let descriptor = try systemCall("open") {
            open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(0o600))
        }
        unlink(path)
        return descriptor
    }
}

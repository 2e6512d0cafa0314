import Rondo

// How requests are kept inside the folder: the kernel follows a path, with its symbolic links and `..`, and
// opens the result by O_PATH, which touches nothing: no device is rewound, no FIFO waits for a writer. Then
// /proc gives the real path of that descriptor, which must be below the real path of the folder's own
// descriptor. Only then the same node is opened for reading, through its entry in /proc, so that it cannot be
// replaced in between.

/// The folder that is served: finds files and folders below it.
final class ServedFolder: Sendable {
    enum Found {
        case file(ServedFile)
        case folder
        case missing
        case forbidden
        case busy
    }

    enum Listed {
        case entries(FolderListing)
        /// It cannot be read, or is no folder any more.
        case forbidden
        case busy
    }

    private enum Named {
        case served(FolderListing.Entry)
        /// Neither file nor folder, or a link that leads out of the folder.
        case hidden
        case busy
    }

    private let descriptor: Int32
    /// `O_PATH`, which the C library's module does not export.
    private static let pathOnly: Int32 = 0o10000000

    /// Nil if `path` is no folder.
    init?(_ path: String) {
        descriptor = open(path, Self.pathOnly | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The file or folder at `path`, relative to this folder even if `path` begins with slashes.
    func find(_ path: [UInt8]) -> Found {
        withNode(at: path) { node, status in
            switch status.st_mode & S_IFMT {
            case S_IFREG: file(node, status, path: path)
            case S_IFDIR: .folder
            default: .missing
            }
        } onFailure: {
            $0
        }
    }

    /// The entries of the folder at `path`.
    func list(_ path: [UInt8]) -> Listed {
        withNode(at: path) { node, _ in
            list(node)
        } onFailure: { found -> Listed in
            if case .busy = found { return .busy }
            return .forbidden
        }
    }

    /// Calls `body` with the node at `path`, opened by O_PATH, if it is inside the folder.
    private func withNode<R>(at path: [UInt8], _ body: (Int32, stat) -> R, onFailure: (Found) -> R) -> R {
        let relative = path.drop { $0 == UInt8(ascii: "/") }
        let node = Self.withText(relative.isEmpty ? [UInt8(ascii: ".")] : Array(relative)) {
            openat(descriptor, $0, Self.pathOnly | O_CLOEXEC)
        }
        guard node >= 0 else { return onFailure(Self.isBusy(errno) ? .busy : .missing) }
        defer { close(node) }
        var status = stat()
        guard isInside(node), fstat(node, &status) == 0 else { return onFailure(.missing) }
        return body(node, status)
    }

    /// Calls `body` with `bytes` as a C string.
    private static func withText<R>(_ bytes: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
        var text = bytes.map { CChar(bitPattern: $0) }
        text.append(0)
        return text.withUnsafeBufferPointer { text in
            // The array contains at least a NUL, so it has an address.
            guard let start = text.baseAddress else {
                fatalError("bug in Rondo: an array without an address")
            }
            return body(start)
        }
    }

    private static func isBusy(_ code: Int32) -> Bool {
        code == EMFILE || code == ENFILE || code == ENOMEM
    }

    private func isInside(_ node: Int32) -> Bool {
        guard let root = place(of: descriptor), let place = place(of: node) else { return false }
        let slash = UInt8(ascii: "/")
        return root == [slash] || place == root || place.starts(with: root + [slash])
    }

    /// The path of the file that a descriptor refers to.
    private func place(of descriptor: Int32) -> [UInt8]? {
        var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = path.withUnsafeMutableBytes { buffer in
            buffer.withMemoryRebound(to: CChar.self) { buffer in
                buffer.baseAddress.map { readlink("/proc/self/fd/\(descriptor)", $0, buffer.count) } ?? -1
            }
        }
        // A path that fills the buffer may be incomplete.
        guard count > 0, count < path.count else { return nil }
        return Array(path.prefix(count))
    }

    private func file(_ node: Int32, _ status: stat, path: [UInt8]) -> Found {
        let file = Foundation.open("/proc/self/fd/\(node)", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return Self.isBusy(errno) ? .busy : .forbidden }
        let name = String(decoding: path.split(separator: UInt8(ascii: "/")).last ?? [], as: UTF8.self)
        return .file(ServedFile(file, status, type: MediaTypes.type(ofFile: name)))
    }

    private func list(_ node: Int32) -> Listed {
        let folder = Foundation.open("/proc/self/fd/\(node)", O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard folder >= 0 else { return Self.isBusy(errno) ? .busy : .forbidden }
        guard let stream = fdopendir(folder) else {
            let code = errno
            close(folder)
            return Self.isBusy(code) ? .busy : .forbidden
        }
        defer { closedir(stream) }
        var listing = FolderListing(isRoot: place(of: node) == place(of: descriptor))
        while let entry = readdir(stream) {
            guard let name = Self.name(of: entry), name != Array(".".utf8), name != Array("..".utf8) else {
                continue
            }
            guard listing.entries.count < ServerLimits.listedEntries else {
                listing.isCut = true
                break
            }
            switch self.entry(name, in: folder) {
            case .served(let entry): listing.entries.append(entry)
            case .hidden: break
            case .busy: return .busy
            }
        }
        listing.sort()
        return .entries(listing)
    }

    private static func name(of entry: UnsafeMutablePointer<dirent>) -> [UInt8]? {
        guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
        // `d_name` ends with a NUL inside the entry, which readdir keeps until its next call.
        let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: UInt8.self)
        var count = 0
        while name[count] != 0 { count += 1 }
        return Array(UnsafeBufferPointer(start: name, count: count))
    }

    private func entry(_ name: [UInt8], in folder: Int32) -> Named {
        var status = stat()
        var isBusy = false
        let isThere = Self.withText(name) { text in
            guard fstatat(folder, text, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
            guard status.st_mode & S_IFMT == S_IFLNK else { return true }
            let node = openat(folder, text, Self.pathOnly | O_CLOEXEC)
            guard node >= 0 else {
                isBusy = Self.isBusy(errno)
                return false
            }
            defer { close(node) }
            return isInside(node) && fstat(node, &status) == 0
        }
        if isBusy { return .busy }
        let kind = status.st_mode & S_IFMT
        guard isThere, kind == S_IFREG || kind == S_IFDIR else { return .hidden }
        return .served(
            FolderListing.Entry(
                name: name, isFolder: kind == S_IFDIR, size: Int(status.st_size),
                modified: status.st_mtim.tv_sec))
    }
}

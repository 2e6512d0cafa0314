// The methods of classes, from the symbol table of the running program.
//
// Swift has no list of a class's methods at run time: a method that nothing can call through a protocol or a
// superclass leaves no trace in the metadata. The symbol table that the linker writes into an executable or a
// shared library has one entry for each method that the compiler kept, by its mangled name, which begins with
// the mangled name of its class. So this looks up the class's descriptor, whose address the metadata holds,
// in the table, and then all names with the same beginning as the descriptor's.
//
// In a stripped program nothing is found. If the class is final, private or local, a release build keeps no
// trace of a method that is never called: the compiler removes it, with its name.

/// The symbols of one executable or shared library, read from its file.
struct ProgramSymbols {
    private let names: [UInt8]
    /// The entries of the symbol table, 24 bytes each.
    private let table: [UInt8]
    /// The difference between an address in memory and the address in the file.
    private let slide: UInt

    private static let entrySize = 24
    /// The largest size of a file's symbols, or of their names, that is read, in bytes.
    private static let maximumSize = 1 << 29

    // MARK: Reading

    /// - Parameters:
    ///   - path: The path of the file.
    ///   - base: The address of the file's first byte in memory.
    /// - Returns: Nil if the file cannot be read, or is not one that this machine can have loaded.
    init?(path: String, base: UInt) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard let header = Self.read(descriptor, from: 0, count: 64),
            // The magic number, 64 bits, little endian.
            header.starts(with: [0x7F, 0x45, 0x4C, 0x46, 2, 1]),
            let segments = Self.read(
                descriptor, from: header.integer(at: 32, UInt64.self),
                count: Int(header.integer(at: 54, UInt16.self)) * Int(header.integer(at: 56, UInt16.self))),
            let sections = Self.read(
                descriptor, from: header.integer(at: 40, UInt64.self),
                count: Int(header.integer(at: 58, UInt16.self)) * Int(header.integer(at: 60, UInt16.self)))
        else { return nil }
        let headers = Self.pieces(of: sections, size: Int(header.integer(at: 58, UInt16.self)), atLeast: 64)
        // The whole table, or the exported names if the table was stripped.
        guard
            let symbols = headers.first(where: { $0.integer(at: 4, UInt32.self) == 2 })
                ?? headers.first(where: { $0.integer(at: 4, UInt32.self) == 11 }),
            let strings = headers.element(Int(symbols.integer(at: 40, UInt32.self))),
            let table = Self.read(descriptor, section: symbols),
            let names = Self.read(descriptor, section: strings), names.last == 0
        else { return nil }
        let loaded = Self.pieces(of: segments, size: Int(header.integer(at: 54, UInt16.self)), atLeast: 56)
            .filter { $0.integer(at: 0, UInt32.self) == 1 }
            .map { UInt($0.integer(at: 16, UInt64.self)) & ~0xFFF }
        guard let lowest = loaded.min() else { return nil }
        self.table = table
        self.names = names
        slide = base &- lowest
    }

    private static func read(_ descriptor: Int32, section: ArraySlice<UInt8>) -> [UInt8]? {
        guard let count = Int(exactly: section.integer(at: 32, UInt64.self)) else { return nil }
        return read(descriptor, from: section.integer(at: 24, UInt64.self), count: count)
    }

    private static func read(_ descriptor: Int32, from offset: UInt64, count: Int) -> [UInt8]? {
        guard count <= maximumSize, let offset = off_t(exactly: offset) else { return nil }
        // The size is checked before memory is allocated for it.
        var status = stat()
        guard fstat(descriptor, &status) == 0, offset <= status.st_size,
            off_t(count) <= off_t(status.st_size) - offset
        else { return nil }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = pread(
                    descriptor, buffer.baseAddress! + filled, count - filled, offset + off_t(filled))
                if got < 0 && errno == EINTR { continue }
                guard got > 0 else { break }
                filled += got
            }
        }.whole(count)
    }

    private static func pieces(of bytes: [UInt8], size: Int, atLeast least: Int) -> [ArraySlice<UInt8>] {
        guard size >= least else { return [] }
        return stride(from: 0, to: bytes.count - size + 1, by: size).map { bytes[$0..<$0 + size] }
    }

    // MARK: Looking up

    /// The name of a symbol at `address` that ends with `ending`.
    func name(at address: UInt, ending: String) -> String? {
        let value = address &- slide
        let offsets = table.withUnsafeBytes { table -> [Int] in
            var found: [Int] = []
            for entry in stride(from: 0, to: table.count - Self.entrySize + 1, by: Self.entrySize)
            where table.loadUnaligned(fromByteOffset: entry + 8, as: UInt64.self) == value {
                found.append(Int(table.loadUnaligned(fromByteOffset: entry, as: UInt32.self)))
            }
            return found
        }
        return offsets.lazy.compactMap { name(from: $0) }.first { $0.hasSuffix(ending) }
    }

    /// All names that begin with `prefix`.
    func names(beginningWith prefix: String) -> [String] {
        let wanted = Array(prefix.utf8)
        var offsets: [Int] = []
        names.withUnsafeBytes { names in
            guard let base = names.baseAddress else { return }
            var position = 0
            // The last byte ends a name, so nothing is read beyond it.
            while position < names.count {
                let name = base + position
                let length = strlen(name.assumingMemoryBound(to: CChar.self))
                if length > wanted.count, memcmp(name, wanted, wanted.count) == 0 { offsets.append(position) }
                position += length + 1
            }
        }
        return offsets.compactMap { name(from: $0) }
    }

    private func name(from offset: Int) -> String? {
        guard offset < names.count, let end = names[offset...].firstIndex(of: 0) else { return nil }
        return String(decoding: names[offset..<end], as: UTF8.self)
    }
}

extension Collection where Element == UInt8, Index == Int {
    /// The bytes at `offset` from the start as a number; 0 beyond the end.
    fileprivate func integer<Number: FixedWidthInteger>(at offset: Int, _: Number.Type) -> Number {
        let size = MemoryLayout<Number>.size
        guard offset + size <= count else { return 0 }
        return (0..<size).reversed().reduce(0) { $0 << 8 | Number(self[startIndex + offset + $1]) }
    }
}

extension Array {
    fileprivate func whole(_ count: Int) -> Self? { self.count == count ? self : nil }

    fileprivate func element(_ index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

/// The addresses at which the program's files are mapped into memory.
struct ProgramImages {
    private struct Mapping {
        let range: Range<UInt>
        let offset: UInt
        let path: String
    }

    private let mappings: [Mapping]

    /// Reads the present mappings (proc_pid_maps(5)).
    init() {
        let text = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
        mappings = text.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
            guard fields.count == 6 else { return nil }
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard ends.count == 2, ends[0] < ends[1], let offset = UInt(fields[2], radix: 16) else {
                return nil
            }
            return Mapping(
                range: ends[0]..<ends[1], offset: offset, path: String(fields[5].drop { $0 == " " }))
        }
    }

    /// The file that contains `address`, and the address of its first byte.
    func image(around address: UInt) -> (path: String, base: UInt)? {
        guard let found = mappings.first(where: { $0.range.contains(address) }) else { return nil }
        let start = mappings.last {
            $0.path == found.path && $0.offset == 0 && $0.range.lowerBound <= address
        }
        return start.map { (found.path, $0.range.lowerBound) }
    }
}

import Rondo

/// The entries of a folder.
struct FolderListing {
    struct Entry {
        /// The bytes in the file system, usually UTF-8.
        let name: [UInt8]
        let isFolder: Bool
        let size: Int
        /// Seconds since 1970.
        let modified: Int
    }

    /// True for the folder that is served, whose parent is not accessible.
    let isRoot: Bool
    var entries: [Entry] = []
    /// True if the folder has more entries than are listed.
    var isCut = false

    init(isRoot: Bool) {
        self.isRoot = isRoot
    }

    /// Sorts folders first, then by name; `part10` follows `part9`.
    mutating func sort() {
        let keyed = entries.map { (key: Self.key($0.name), entry: $0) }
        entries = keyed.sorted { a, b in
            if a.entry.isFolder != b.entry.isFolder { return a.entry.isFolder }
            return a.key == b.key
                ? a.entry.name.lexicographicallyPrecedes(b.entry.name)
                : a.key.lexicographicallyPrecedes(b.key)
        }.map(\.entry)
    }

    /// The name in lower case. Each run of digits is preceded by its length without leading zeros.
    private static func key(_ name: [UInt8]) -> [UInt8] {
        var key: [UInt8] = []
        var rest = name[...]
        while let byte = rest.first {
            let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
            if digits.isEmpty {
                key.append(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte)
                rest.removeFirst()
            } else {
                let number = digits.drop { $0 == UInt8(ascii: "0") }
                // Numbers sort among digits, shorter numbers first; a name has at most 255 bytes.
                key += [UInt8(ascii: "0"), UInt8(min(number.count, 255))] + number
                rest = rest.dropFirst(digits.count)
            }
        }
        return key
    }
}

import Rondo

/// The bytes of a file that `-r` and `-C` select. As in curl, `-C` counts before `-r`, and of several ranges
/// the first one is taken.
enum FileWindow {
    /// - Parameters:
    ///   - range: The value of `-r`.
    ///   - offset: The position from which `-C` continues.
    ///   - size: The bytes that the file has.
    /// - Returns: The positions, which may go beyond the end; nil means the whole file.
    static func of(_ range: String?, offset: Int64, size: Int) throws(FetchFailure) -> Range<Int>? {
        if offset > 0 { return try rest(from: Int(clamping: offset), size) }
        guard let range else { return nil }
        let ends = (range.split(separator: ",").first ?? "")
            .split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { throw noRange(range) }
        if ends[0].isEmpty, let count = Int(ends[1]) { return try rest(from: size - count, size) }
        guard let first = Int(ends[0]) else { throw noRange(range) }
        if ends[1].isEmpty { return try rest(from: first, size) }
        guard let last = Int(ends[1]), first <= last else { throw noRange(range) }
        _ = try rest(from: first, size)
        return first..<min(last, Int.max - 1) + 1
    }

    private static func rest(from first: Int, _ size: Int) throws(FetchFailure) -> Range<Int> {
        if 0...size ~= first { return first..<Int.max }
        throw FetchFailure(
            .cannotDecodeContentData, "there are only \(size) bytes (-r, -C)", status: .cannotResume)
    }

    private static func noRange(_ text: String) -> FetchFailure {
        FetchFailure(
            .cannotDecodeContentData, "-r: not a range of bytes: \(text)", status: .noRange)
    }
}

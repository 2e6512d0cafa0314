import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// The limits of the partial files that failed downloads leave.
@Suite(.timeLimit(.minutes(1)), .leavesNoConnections) struct KeptDownloadsTests {
    /// A temporary file of `size` bytes that a download has left.
    private static func left(
        _ size: Int, isAsked: Bool = false, among kept: KeptDownloads
    ) throws -> URL {
        let file = try DownloadFile()
        try file.write(Data(count: size))
        _ = try #require(file.keep(isAsked: isAsked, among: kept))
        return file.url
    }

    private static func exists(_ file: URL) -> Bool { FileManager.default.fileExists(atPath: file.path) }

    private static func remove(_ files: [URL]) { for file in files { unlink(file.path) } }

    @Test func `US-64 of many failed downloads the oldest files are removed`() throws {
        let kept = KeptDownloads(maximumCount: 2)
        let asked = try Self.left(1, isAsked: true, among: kept)
        let files = try (0..<4).map { _ in try Self.left(1, among: kept) }
        defer { Self.remove(files + [asked]) }
        #expect(files.map { Self.exists($0) } == [false, false, true, true])
        #expect(Self.exists(asked))
    }

    @Test func `US-64 failed downloads leave a limited number of bytes, and always the newest file`() throws {
        let kept = KeptDownloads(maximumBytes: 10)
        var files = try [4, 4, 4].map { try Self.left($0, among: kept) }
        defer { Self.remove(files) }
        #expect(files.map { Self.exists($0) } == [false, true, true])
        files.append(try Self.left(20, among: kept))
        #expect(files.map { Self.exists($0) } == [false, false, false, true])
        files.append(try Self.left(1, among: kept))
        #expect(files.map { Self.exists($0) } == [false, false, false, false, true])
    }

    @Test func `US-64 a file that a download continues is not removed`() throws {
        let kept = KeptDownloads(maximumCount: 1)
        let first = try Self.left(2, among: kept)
        let reopened = try DownloadFile(reopening: first.lastPathComponent, at: 1)
        let second = try Self.left(1, among: kept)
        #expect(Self.exists(first) && Self.exists(second))
        // It counts as the newest again.
        _ = try #require(reopened.keep(isAsked: false, among: kept))
        defer { Self.remove([first, second]) }
        #expect(Self.exists(first) && !Self.exists(second))
    }

    @Test func `US-64 a download that has opened its file again does not count any more`() throws {
        let kept = KeptDownloads(maximumCount: 1)
        let file = try Self.left(1, among: kept)
        kept.forget(file.path)
        let next = try Self.left(1, among: kept)
        defer { Self.remove([file, next]) }
        #expect(Self.exists(file) && Self.exists(next))
    }

    @Test func `US-64 old partial files that are not in use are removed`() throws {
        let manager = FileManager.default
        let folder = manager.temporaryDirectory.appendingPathComponent("rondo-test-\(UUID().uuidString)")
        try manager.createDirectory(at: folder, withIntermediateDirectories: true)
        // A temporary folder that cannot be removed does not fail the test.
        defer { try? manager.removeItem(at: folder) }
        let names = (0..<3).map { _ in "rondo-download-\(UUID().uuidString)" }
        let (old, inUse, new) = (names[0], names[1], names[2])
        let others = ["rondo-download-mine", "rondo-file-\(UUID().uuidString)"]
        let long = Date(timeIntervalSinceNow: -11 * 24 * 60 * 60)
        for name in names + others {
            let path = folder.appendingPathComponent(name).path
            #expect(manager.createFile(atPath: path, contents: Data("part".utf8)))
            if name != new { try manager.setAttributes([.modificationDate: long], ofItemAtPath: path) }
        }
        let used = open(folder.appendingPathComponent(inUse).path, O_WRONLY | O_CLOEXEC)
        try #require(used >= 0)
        defer { close(used) }
        #expect(flock(used, LOCK_EX | LOCK_NB) == 0)
        KeptDownloads.removeOld(in: folder.path)
        let rest = Set(try manager.contentsOfDirectory(atPath: folder.path))
        #expect(rest == Set(names + others).subtracting([old]))
    }
}

import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

@Suite struct FileHandleTableTests {
    /// Stands for a handle.
    private final class Handle {}

    @Test func `FH-14 a handle that is scheduled costs a few looks at others, however many there are`() {
        let handles = (0..<10_000).map { _ in Handle() }
        var table = FileHandleHandlers.Table<Int>()
        var (looks, removed) = (0, 0)
        for (number, handle) in handles.enumerated() {
            removed +=
                table.add(number, for: ObjectIdentifier(handle)) { _ in
                    looks += 1
                    return true
                }.count
        }
        #expect(removed == 0)
        #expect(looks < 3 * handles.count)
        #expect(handles.indices.allSatisfy { table[ObjectIdentifier(handles[$0])] == $0 })
    }

    @Test func `FH-14 what is kept for released handles goes when others are scheduled`() {
        let handles = (0..<17).map { _ in Handle() }
        var table = FileHandleHandlers.Table<Int>()
        var removed: [Int] = []
        for (number, handle) in handles.enumerated() {
            removed += table.add(number, for: ObjectIdentifier(handle)) { $0 == 16 }
        }
        #expect(removed.sorted() == Array(0..<16))
        #expect(table[ObjectIdentifier(handles[16])] == 16)
    }

    /// Rondo's own properties are in another module: in this file they are Foundation's.
    @Test func `FH-14 a handler that Foundation's property gets meanwhile outlasts a schedule`() throws {
        let (pipe, log, isCalled) = (Pipe(), EventLog(), Latch())
        try onLoopThread { loop in
            let handle = pipe.fileHandleForReading
            handle.readabilityHandler = { _ in log.note("earlier") }
            try? handle.schedule(in: loop, forMode: .default)
            #expect(handle.readabilityHandler == nil)
            handle.readabilityHandler = { handle in
                handle.readabilityHandler = nil
                log.note("later")
                isCalled.open()
            }
            handle.remove(from: loop, forMode: .default)
        }
        pipe.fileHandleForWriting.write(Data("x".utf8))
        try withExtendedLifetime(pipe) { try isCalled.wait() }
        #expect(log.entries == ["later"])
    }
}

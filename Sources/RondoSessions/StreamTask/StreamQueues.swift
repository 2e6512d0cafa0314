internal import RondoCore

/// What a stream task was asked to do and has not done: a value without I/O; each handler leaves it exactly once.
///
/// Reads are done in the order of their calls, and so are writes; both at the same time. What concerns the connection itself
/// is done when all is done that was asked for before it, and before all that comes after it (rule US-89).
struct StreamQueues {
    typealias ReadHandler = @Sendable (Data?, Bool, (any Error)?) -> Void
    typealias WriteHandler = @Sendable ((any Error)?) -> Void

    struct Read {
        let number: Int
        let minimum: Int
        let maximum: Int
        let handler: ReadHandler
    }

    struct Write {
        let number: Int
        let data: Data
        let handler: WriteHandler
    }

    enum Reading {
        case read(Read)
        case close(Int)

        fileprivate var number: Int {
            switch self {
            case .read(let read): read.number
            case .close(let number): number
            }
        }
    }

    enum Writing {
        case write(Write)
        case close(Int)

        fileprivate var number: Int {
            switch self {
            case .write(let write): write.number
            case .close(let number): number
            }
        }
    }

    /// What concerns the connection itself.
    enum Change {
        /// TLS begins.
        case secure
        /// The program gets the connection as two streams.
        case capture
    }

    /// Nothing is done at present: the task is suspended, or ends.
    var standsStill = false
    /// Taken by the connection, and not yet done.
    private(set) var current: Write?
    private var lastNumber = 0
    private var reads = Line<Reading>()
    private var writes = Line<Writing>()
    private var changes = Line<(number: Int, change: Change)>()

    // MARK: - What the program wants

    private mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// A read of nothing, or of less than its minimum, is one of at least a byte.
    mutating func addRead(minimum: Int, maximum: Int, _ handler: @escaping ReadHandler) -> Int {
        let number = nextNumber()
        let maximum = max(maximum, 1)
        let minimum = min(max(minimum, 1), maximum)
        reads.append(.read(Read(number: number, minimum: minimum, maximum: maximum, handler: handler)))
        return number
    }

    mutating func addWrite(_ data: Data, _ handler: @escaping WriteHandler) -> Int {
        let number = nextNumber()
        writes.append(.write(Write(number: number, data: data, handler: handler)))
        return number
    }

    mutating func addCloseRead() { reads.append(.close(nextNumber())) }
    mutating func addCloseWrite() { writes.append(.close(nextNumber())) }
    mutating func add(_ change: Change) { changes.append((nextNumber(), change)) }

    // MARK: - What is to be done next

    /// A change that has to be made before whatever has this number.
    private func isBehindChange(_ number: Int) -> Bool { changes.first.map { $0.number < number } ?? false }

    var nextRead: Reading? {
        guard !standsStill, let first = reads.first, !isBehindChange(first.number) else { return nil }
        return first
    }

    /// Takes the first of the reads, if it is that one still.
    ///
    /// - Returns: False: it was taken back.
    mutating func take(_ reading: Reading) -> Bool {
        guard reads.first?.number == reading.number else { return false }
        _ = reads.popFirst()
        return true
    }

    /// The bytes to be written next; a write is `current` until `endWrite()`.
    mutating func takeWriting() -> Writing? {
        guard !standsStill, current == nil, let first = writes.first, !isBehindChange(first.number) else {
            return nil
        }
        _ = writes.popFirst()
        if case .write(let write) = first { current = write }
        return first
    }

    /// - Returns: The write that was under way.
    mutating func endWrite() -> Write? { current.take() }

    mutating func takeChange() -> Change? {
        guard !standsStill, current == nil, let first = changes.first else { return nil }
        if let read = reads.first, read.number < first.number { return nil }
        if let write = writes.first, write.number < first.number { return nil }
        return changes.popFirst()?.change
    }

    /// Nothing is asked for.
    var isEmpty: Bool { current == nil && reads.isEmpty && writes.isEmpty && changes.isEmpty }

    // MARK: - What is not done

    /// Takes back a read that was not answered.
    mutating func removeRead(_ number: Int) -> ReadHandler? {
        guard case .read(let read) = reads.remove(where: { $0.isRead && $0.number == number }) else {
            return nil
        }
        return read.handler
    }

    /// Takes back a write that was not begun.
    mutating func removeWrite(_ number: Int) -> WriteHandler? {
        guard case .write(let write) = writes.remove(where: { $0.isWrite && $0.number == number }) else {
            return nil
        }
        return write.handler
    }

    /// All handlers, in the order in which they were handed over.
    mutating func takeAll() -> (reads: [ReadHandler], writes: [WriteHandler]) {
        var all: (reads: [ReadHandler], writes: [WriteHandler]) = ([], [])
        if let write = current.take() { all.writes.append(write.handler) }
        while let next = reads.popFirst() {
            if case .read(let read) = next { all.reads.append(read.handler) }
        }
        while let next = writes.popFirst() {
            if case .write(let write) = next { all.writes.append(write.handler) }
        }
        changes = Line()
        return all
    }
}

extension StreamQueues.Reading {
    fileprivate var isRead: Bool { if case .read = self { true } else { false } }
}

extension StreamQueues.Writing {
    fileprivate var isWrite: Bool { if case .write = self { true } else { false } }
}

internal import RondoCore

/// The operations that a stream task has not performed yet, as a value without I/O. Each handler leaves it
/// exactly once.
///
/// Reads are performed in the order of their calls, and so are writes; both at the same time. A change of the
/// connection itself, such as the start of TLS, waits for all earlier operations, and all later ones wait for
/// it (rule US-89).
struct StreamQueues {
    typealias ReadHandler = @Sendable (Data?, Bool, (any Error)?) -> Void
    typealias WriteHandler = @Sendable ((any Error)?) -> Void

    struct Read {
        let number: Int
        /// Whether it has a timeout.
        let isLimited: Bool
        let minimum: Int
        let maximum: Int
        let handler: ReadHandler
    }

    struct Write {
        let number: Int
        /// Whether it has a timeout.
        let isLimited: Bool
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
        case close
    }

    /// A change of the connection itself.
    enum Change {
        /// Begin TLS.
        case secure
        /// Hand the connection to the program as two streams.
        case capture
    }

    /// True while the task is suspended or ends: no operation is performed.
    var isHalted = false
    /// The write that was begun and is not finished.
    private(set) var current: Write?
    private var lastNumber = 0
    // By their numbers.
    private var reads = KeyedQueue<Int, Reading>()
    private var writes = KeyedQueue<Int, Writing>()
    private var changes = KeyedQueue<Int, Change>()

    // MARK: - Adding operations

    private mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// Adds a read. Limits below 1 count as 1, and the minimum is at most the maximum.
    mutating func addRead(
        minimum: Int, maximum: Int, isLimited: Bool = false, _ handler: @escaping ReadHandler
    ) -> Int {
        let number = nextNumber()
        let maximum = max(maximum, 1)
        let minimum = min(max(minimum, 1), maximum)
        let read = Read(
            number: number, isLimited: isLimited, minimum: minimum, maximum: maximum, handler: handler)
        reads.insert(.read(read), key: number)
        return number
    }

    mutating func addWrite(_ data: Data, isLimited: Bool = false, _ handler: @escaping WriteHandler) -> Int {
        let number = nextNumber()
        let write = Write(number: number, isLimited: isLimited, data: data, handler: handler)
        writes.insert(.write(write), key: number)
        return number
    }

    mutating func addCloseRead() {
        let number = nextNumber()
        reads.insert(.close(number), key: number)
    }

    mutating func addCloseWrite() { writes.insert(.close, key: nextNumber()) }
    mutating func add(_ change: Change) { changes.insert(change, key: nextNumber()) }

    // MARK: - Performing operations

    /// True if a change must be made before the operation of this number.
    private func isBehindChange(_ number: Int) -> Bool { changes.firstKey.map { $0 < number } ?? false }

    var nextRead: Reading? {
        guard !isHalted, let first = reads.first, !isBehindChange(first.number) else { return nil }
        return first
    }

    /// Removes the first read, if it is still `reading`.
    ///
    /// - Returns: False if it was cancelled.
    mutating func take(_ reading: Reading) -> Bool {
        guard reads.firstKey == reading.number else { return false }
        _ = reads.popFirst()
        return true
    }

    /// Removes the next write or close. A write is `current` until `endWrite()`.
    mutating func takeWriting() -> Writing? {
        guard !isHalted, current == nil, let number = writes.firstKey, !isBehindChange(number),
            let first = writes.popFirst()
        else { return nil }
        if case .write(let write) = first { current = write }
        return first
    }

    /// - Returns: The write that was being performed.
    mutating func endWrite() -> Write? { current.take() }

    mutating func takeChange() -> Change? {
        guard !isHalted, current == nil, let number = changes.firstKey else { return nil }
        if let read = reads.firstKey, read < number { return nil }
        if let write = writes.firstKey, write < number { return nil }
        return changes.popFirst()
    }

    /// True if no operation waits or is being performed.
    var isEmpty: Bool { current == nil && reads.isEmpty && writes.isEmpty && changes.isEmpty }

    // MARK: - Cancelling operations

    /// Whether a read, which was not performed, is the one for which all others and the changes behind it
    /// wait.
    func isFirstRead(_ number: Int) -> Bool { reads.firstKey == number }

    /// Cancels a read that was not performed.
    mutating func removeRead(_ number: Int) -> Read? {
        guard case .read(let read) = reads.remove(number) else { return nil }
        return read
    }

    /// Cancels a write that was not begun.
    mutating func removeWrite(_ number: Int) -> Write? {
        guard case .write(let write) = writes.remove(number) else { return nil }
        return write
    }

    /// Removes all operations. Handlers are in the order of their calls.
    mutating func takeAll() -> (reads: [ReadHandler], writes: [WriteHandler]) {
        var all: (reads: [ReadHandler], writes: [WriteHandler]) = ([], [])
        if let write = current.take() { all.writes.append(write.handler) }
        while let next = reads.popFirst() {
            if case .read(let read) = next { all.reads.append(read.handler) }
        }
        while let next = writes.popFirst() {
            if case .write(let write) = next { all.writes.append(write.handler) }
        }
        changes = KeyedQueue()
        return all
    }
}

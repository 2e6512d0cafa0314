/// Bytes that were received and not yet read. Taking the first ones moves no others.
package struct ByteQueue: Sendable {
    /// The largest memory that is kept for the next bytes once all have been read.
    private static let keptCapacity = 64 * 1024

    private var storage: [UInt8] = []
    private var start = 0

    package init() {}

    package var isEmpty: Bool { start == storage.count }
    package var count: Int { storage.count - start }
    package var unread: ArraySlice<UInt8> { storage[start...] }

    package mutating func append(_ bytes: some Sequence<UInt8>) {
        // Bytes that were read are dropped before more are stored, so that the queue holds hardly more than
        // the unread ones.
        if isEmpty {
            storage.removeAll(keepingCapacity: storage.capacity <= Self.keptCapacity)
            start = 0
        } else if start > storage.count / 2 {
            storage.removeSubrange(..<start)
            start = 0
        }
        storage.append(contentsOf: bytes)
    }

    package mutating func consume(_ count: Int) {
        precondition(count <= self.count, "bug in Rondo: more was read than there was")
        start += count
    }
}

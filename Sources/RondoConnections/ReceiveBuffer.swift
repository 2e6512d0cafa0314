internal import RondoCore

/// Memory that a channel reads into and that `Data` may keep a part of without a copy.
///
/// A large piece of a body is handed to the delegate where it was received: the `Data` keeps this object, and
/// the next read takes new memory. A small one is copied, so that it does not hold on to much more than
/// itself.
final class ReceiveBuffer: @unchecked Sendable {
    // `@unchecked`: written only before a part of it is handed out as `Data`, which nobody can write to.

    /// Bytes asked of the socket at once. Reading 64 KiB or more at a time is what bulk transfers need; twice
    /// that costs no more and halves the calls.
    static let capacity = 128 * 1024
    /// From this size on a piece is handed out in place.
    static let inPlaceThreshold = 16 * 1024

    /// Owned: allocated here, freed in `deinit`, which waits for every `Data` that shows a part of it.
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: ReceiveBuffer.capacity, alignment: 16)
    private(set) var isShared = false

    deinit { memory.deallocate() }

    func data(_ range: Range<Int>) -> Data {
        guard let base = memory.baseAddress, range.count >= Self.inPlaceThreshold else {
            return Data(UnsafeRawBufferPointer(rebasing: memory[range]))
        }
        isShared = true
        return Data(
            bytesNoCopy: base + range.lowerBound, count: range.count,
            deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
    }
}

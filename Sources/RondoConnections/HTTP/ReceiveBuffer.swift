internal import RondoCore
internal import Synchronization

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
    @exclusivity(unchecked) private(set) var isShared = false

    deinit { memory.deallocate() }

    // MARK: Spares

    /// Buffers that are kept for the next exchange; more come and go with bursts.
    private static let maximumSpare = 8

    private static let spare = Mutex<[ReceiveBuffer]>([])

    static func take() -> ReceiveBuffer { spare.withLock { $0.popLast() } ?? ReceiveBuffer() }

    /// To be called by who has let go of it: a part of it may be somebody's `Data`, then it is not used again.
    static func give(back buffer: ReceiveBuffer) {
        guard !buffer.isShared else { return }
        spare.withLock { if $0.count < maximumSpare { $0.append(buffer) } }
    }

    /// The same as bytes of its own, where `data` may be a part of a buffer several times as large: for who keeps it.
    static func compact(_ data: Data) -> Data {
        guard inPlaceThreshold..<(capacity / 4 * 3) ~= data.count else { return data }
        return data.withUnsafeBytes { Data($0) }
    }

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

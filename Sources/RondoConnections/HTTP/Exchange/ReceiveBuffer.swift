internal import RondoCore

/// A buffer into which a channel reads, and whose parts can be delivered as `Data` without a copy.
///
/// A large piece of a body is delivered where it was received: the `Data` retains this object, and the next
/// read takes another buffer. A small piece is copied, so that it does not retain much more memory than it
/// needs.
final class ReceiveBuffer: @unchecked Sendable {
    // `@unchecked`: no range of it is written while a `Data` has it. It is filled from its start to its end,
    // behind the parts that were handed out, and is filled anew only after every `Data` that shares it was
    // released: the same count of references decides that by which Swift's arrays are copied on writing,
    // whatever thread releases the last one.

    /// The bytes requested from the socket at once. Bulk transfers need reads of 64 KiB or more; twice that
    /// costs no more and halves the calls.
    static let capacity = 128 * 1024
    /// Pieces of at least this size are delivered in place.
    static let inPlaceThreshold = 16 * 1024

    /// Owned: freed in `deinit`, which runs only when every `Data` that shares it has been released.
    ///
    /// Aligned to 64 bytes: `malloc` puts a block of this size 16 bytes behind the start of a page, and AMD's
    /// processors copy a page of a file to such an address six to ten times as slowly (64 KiB in 41 µs
    /// instead of 4 to 7).
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: ReceiveBuffer.capacity, alignment: 64)

    deinit { memory.deallocate() }

    // MARK: The spare buffer

    /// The unused buffer of a loop: one is enough, because a buffer is used only while a response is read. It
    /// is not shared by loops, because a lock would then be taken twice for each response. Without it
    /// bench-guard's http.request takes 2 % more instructions, and an allocation of 128 KiB.
    private final class Spare {
        private var buffer: ReceiveBuffer?

        func take() -> ReceiveBuffer? {
            let taken = buffer
            buffer = nil
            return taken
        }

        func keep(_ unused: consuming ReceiveBuffer) { buffer = unused }
    }

    /// Takes the spare buffer of the calling thread's loop, or makes a new one.
    static func take() -> ReceiveBuffer {
        RunLoop.stored(Spare.self, orMake: Spare.init)?.take() ?? ReceiveBuffer()
    }

    /// Keeps a buffer for another use, unless a `Data` shares it.
    static func give(back buffer: consuming ReceiveBuffer) {
        guard isKnownUniquelyReferenced(&buffer),
            let spare = RunLoop.stored(Spare.self, orMake: Spare.init)
        else { return }
        spare.keep(buffer)
    }

    /// A copy of `data` if that may share a buffer several times as large, for data that is kept for a long
    /// time.
    static func compact(_ data: Data) -> Data {
        guard inPlaceThreshold..<(capacity / 4 * 3) ~= data.count else { return data }
        return data.withUnsafeBytes { Data($0) }
    }

    func data(_ range: Range<Int>) -> Data {
        guard let base = memory.baseAddress, range.count >= Self.inPlaceThreshold else {
            return Data(UnsafeRawBufferPointer(rebasing: memory[range]))
        }
        return Data(
            bytesNoCopy: base + range.lowerBound, count: range.count,
            deallocator: .custom { _, _ in withExtendedLifetime(self) {} })
    }
}

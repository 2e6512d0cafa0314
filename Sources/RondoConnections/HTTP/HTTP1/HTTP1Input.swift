internal import RondoCore
internal import RondoStreams

/// The bytes that an exchange has received and not parsed yet, and the end of what the server sends.
///
/// Used inside the gate of the exchange's load. The exchange calls `giveBack()`
/// when everything was parsed, and at its end.
struct HTTP1Input {
    /// The end of what the server sends.
    enum End {
        case none
        /// The codec is told when it has read everything before. An end without TLS's close_notify is
        /// forgeable: an attacker in the network may have caused it.
        case seen(isForgeable: Bool)
        case told(isForgeable: Bool)
        /// Reported after the bytes that came before it, which the delegate may not take yet.
        case failed(ChannelError)
    }

    /// Held only while there are bytes that were not parsed.
    private var buffer: ReceiveBuffer?
    /// The number of bytes in the buffer.
    private var filled = 0
    /// The number of those that were parsed; the codec counts them.
    var consumed = 0
    private(set) var end = End.none

    /// Whether everything was parsed.
    var isEmpty: Bool { consumed == filled }

    /// The bytes in the buffer, of which the first `consumed` were parsed.
    var bytes: UnsafeRawBufferPointer {
        guard let buffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: buffer.memory[..<filled])
    }

    func data(_ range: Range<Int>) -> Data { buffer?.data(range) ?? Data() }

    /// Reads what has come, as far as there is room.
    ///
    /// - Parameter times: The times to note it in; nil if metrics are not wanted.
    /// - Returns: Whether bytes have come.
    mutating func fill(from channel: SocketChannel, noting times: ExchangeTimes?) -> Bool {
        // A function of its own, because `giveBack()` can return the buffer for reuse only if no local
        // variable refers to it. (bench-guard counts two allocations more for http.request otherwise.)
        let buffer = buffer ?? ReceiveBuffer.take()
        self.buffer = buffer
        let before = filled
        do throws(ChannelError) {
            // TLS returns one record at a time: several are read in one pass.
            fill: while filled < ReceiveBuffer.capacity {
                let room = UnsafeMutableRawBufferPointer(rebasing: buffer.memory[filled...])
                switch try channel.read(into: room) {
                case .bytes(let count):
                    filled += count
                    times?.received(count)
                    if !channel.hasBufferedBytes && count < room.count { break fill }
                case .wouldBlock:
                    break fill
                case .end:
                    note(.seen(isForgeable: false))
                    break fill
                case .truncated:
                    note(.seen(isForgeable: true))
                    break fill
                }
            }
        } catch {
            note(.failed(error))
        }
        return filled > before
    }

    /// Notes the end of the input. Later ends are ignored.
    private mutating func note(_ end: End) { if case .none = self.end { self.end = end } }

    /// Notes that the codec is told the end.
    mutating func noteTold(isForgeable: Bool) { end = .told(isForgeable: isForgeable) }

    /// Takes the bytes that were not parsed. They stay in place as long as the buffer that is returned with
    /// them lives.
    mutating func takeRest() -> (bytes: UnsafeRawBufferPointer, buffer: ReceiveBuffer?) {
        defer { consumed = filled }
        return (UnsafeRawBufferPointer(rebasing: bytes[consumed...]), buffer)
    }

    /// Returns the buffer for another use, and drops what is in it.
    mutating func giveBack() {
        guard let buffer = buffer.take() else { return }
        (consumed, filled) = (0, 0)
        // Consumed, so that the reference that is returned is the last one.
        ReceiveBuffer.give(back: consume buffer)
    }
}

import Rondo
import Testing

@testable import RondoConnections

/// The buffers of a run loop into which bytes are received.
struct ReceiveBufferTests {
    /// Gives the last reference back.
    private static func giveBack(_ buffer: inout ReceiveBuffer?) {
        if let last = buffer.take() { ReceiveBuffer.give(back: consume last) }
    }

    @Test func `UC-20 a buffer is used again once the program has released its data, and not before`() {
        // The loop of this thread keeps spare buffers.
        _ = RunLoop.current
        var first: ReceiveBuffer? = ReceiveBuffer.take()
        first?.memory.initializeMemory(as: UInt8.self, repeating: 1)
        let size = ReceiveBuffer.inPlaceThreshold
        let data = first?.data(0..<size)
        weak let shared = first
        Self.giveBack(&first)
        // Whatever is received next does not change what the program has.
        var second: ReceiveBuffer? = ReceiveBuffer.take()
        #expect(shared != nil && second !== shared)
        second?.memory.initializeMemory(as: UInt8.self, repeating: 2)
        #expect(data == Data(repeating: 1, count: size))
        // A small piece is a copy, and so the buffer is free.
        let copy = second?.data(0..<size - 1)
        weak let free = second
        Self.giveBack(&second)
        let third = ReceiveBuffer.take()
        #expect(third === free)
        third.memory.initializeMemory(as: UInt8.self, repeating: 3)
        #expect(copy == Data(repeating: 2, count: size - 1))
    }
}

// Two streams over one ring of bytes: the bytes written to one are read from the other (rules ST-34 to
// ST-36).
//
// Threads: the two ends may be used on different threads. The ring is protected by a Mutex. Each end updates
// the other's core after releasing the Mutex, and the core calls its delegate in its own modes. A read or
// write that must wait uses a semaphore, so that no callback runs meanwhile (rule ST-25).

internal import RondoCore
internal import RondoMutex

/// The ring of bytes behind the two streams of a bound pair.
final class BoundPair: StreamBackend, Sendable {
    private struct State {
        let ring: ByteRing
        var isWriterClosed = false
        var isReaderClosed = false
        /// The threads that wait for bytes and for space, at most one for each end.
        var reader: DispatchSemaphore?
        var writer: DispatchSemaphore?
    }

    private let state: Mutex<State>
    private let input: StreamCore
    private let output: StreamCore

    /// The most bytes that a pair holds, whatever was asked for: 1 GiB.
    static let maximumSize = 1 << 30

    /// - Parameter size: The most bytes that may be written and not yet read; from 1 to `maximumSize`.
    init(size: Int, input: StreamCore, output: StreamCore) {
        state = Mutex(State(ring: ByteRing(capacity: min(max(1, size), Self.maximumSize))))
        self.input = input
        self.output = output
    }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        switch side {
        case .input:
            input.opened(isReady: false)
            input.update { updateInput(&$0) }
        case .output:
            output.opened(isReady: false)
            output.update { updateOutput(&$0) }
        }
    }

    // The ring is examined while the core is locked: a value taken earlier could be out of date when it is
    // stored, and overwrite an update of the other end.

    private func updateInput(_ input: inout StreamState) {
        let (hasBytes, hasEnded) = state.withLock { ($0.ring.unread > 0, $0.isWriterClosed) }
        input.setReady(hasBytes)
        if hasEnded && !hasBytes { input.ended() }
    }

    private func updateOutput(_ output: inout StreamState) {
        let (hasSpace, isBroken) = state.withLock { ($0.ring.space > 0, $0.isReaderClosed) }
        output.setReady(hasSpace)
        if isBroken { output.failed(.brokenPair) }
    }

    func close(_ side: StreamState.Direction) {
        let (reader, writer) = state.withLock { state in
            if side == .input { state.isReaderClosed = true } else { state.isWriterClosed = true }
            return (state.reader, state.writer)
        }
        switch side {
        // The reader gets the bytes in the ring, and then the end.
        case .output: input.update { updateInput(&$0) }
        // No reader will make space again, so the writer fails.
        case .input: output.update { updateOutput(&$0) }
        }
        reader?.signal()
        writer?.signal()
    }

    var peerName: String? { "bound pair" }
    func schedule(in mode: LoopMode) {}
    func remove(from mode: LoopMode) {}
    func advance() {}

    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        var gate: DispatchSemaphore?
        while true {
            let (result, writer) = state.withLock { state -> (Int?, DispatchSemaphore?) in
                state.ring.takeBack()
                let count = state.ring.take(buffer)
                state.reader = nil
                if count > 0 { return (count, state.writer) }
                if state.isWriterClosed { return (0, nil) }
                if state.isReaderClosed { return (-1, nil) }
                // No writer waits: there is space while nothing is unread.
                state.reader = gate
                return (nil, nil)
            }
            guard let result else {
                gate = wait(at: gate)
                continue
            }
            inputWasUsed()
            writer?.signal()
            return result
        }
    }

    /// Waits at the semaphore; the first call of a loop only makes it, because most reads and writes need not
    /// wait.
    private func wait(at gate: DispatchSemaphore?) -> DispatchSemaphore {
        guard let gate else { return DispatchSemaphore(value: 0) }
        gate.wait()
        return gate
    }

    /// Lends the bytes up to the end of the ring's memory; the reader's next operation gives their room back
    /// to the writer.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        let (lent, writer) = state.withLock { state in
            state.ring.takeBack()
            return (state.ring.lend(atMost: limit), state.writer)
        }
        // Without a loan nothing was unread, so there was space already.
        guard lent != nil else { return nil }
        inputWasUsed()
        writer?.signal()
        return lent
    }

    private func inputWasUsed() {
        input.update { input in
            input.used(isReady: false)
            updateInput(&input)
        }
        output.update { updateOutput(&$0) }
    }

    var hasBytesAvailable: Bool { state.withLock { $0.ring.unread > 0 } }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int { write([bytes]) }

    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int {
        var gate: DispatchSemaphore?
        while true {
            let (result, reader) = state.withLock { state -> (Int?, DispatchSemaphore?) in
                state.writer = nil
                if state.isReaderClosed || state.isWriterClosed { return (-1, nil) }
                var count = 0
                for piece in pieces where state.ring.space > 0 { count += state.ring.put(piece) }
                if count > 0 { return (count, state.reader) }
                state.writer = gate
                return (nil, nil)
            }
            guard let result else {
                gate = wait(at: gate)
                continue
            }
            output.update { output in
                output.used(isReady: false)
                updateOutput(&output)
            }
            input.update { updateInput(&$0) }
            reader?.signal()
            return result
        }
    }

    var hasSpaceAvailable: Bool {
        state.withLock { $0.ring.space > 0 && !$0.isReaderClosed }
    }

    // MARK: - Properties

    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? { nil }
    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool { false }
}

extension NSError {
    fileprivate static var brokenPair: NSError {
        .posix(EPIPE, "the other end of the bound pair was closed: what is written cannot be read any more")
    }
}

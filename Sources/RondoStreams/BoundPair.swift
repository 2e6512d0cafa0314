// Two streams over one ring of bytes: what is written to one comes out of the other (rules ST-34 to ST-36).
//
// Threads: the ends may live on different ones. The ring is behind a Mutex; each end tells the other's core
// what has changed, with the Mutex let go, and the core tells its delegate in its own modes. An end that
// waits does so on a semaphore, so that no callback runs meanwhile (rule ST-25).

internal import RondoCore
internal import Synchronization

final class BoundPair: StreamBackend, Sendable {
    fileprivate struct State {
        var ring: [UInt8]
        var first = 0
        var count = 0
        var isWriterClosed = false
        var isReaderClosed = false
        /// Whoever waits for bytes, or for space: one thread an end.
        var reader: DispatchSemaphore?
        var writer: DispatchSemaphore?
    }

    private let state: Mutex<State>
    private let input: StreamCore
    private let output: StreamCore

    /// - Parameter size: The most bytes that are written and not yet read; at least 1.
    init(size: Int, input: StreamCore, output: StreamCore) {
        state = Mutex(State(ring: [UInt8](repeating: 0, count: max(1, size))))
        self.input = input
        self.output = output
    }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        switch side {
        case .input:
            input.opened(isReady: false)
            input.update { settleInput(&$0) }
        case .output:
            output.opened(isReady: false)
            output.update { settleOutput(&$0) }
        }
    }

    // What is there is looked up while the core is locked: looked up before, it could be out of date by the
    // time it is noted, and the other end's news be overwritten by it.

    private func settleInput(_ input: inout StreamState) {
        let (hasBytes, hasEnded) = state.withLock { ($0.count > 0, $0.isWriterClosed) }
        input.setReady(hasBytes)
        if hasEnded && !hasBytes { input.ended() }
    }

    private func settleOutput(_ output: inout StreamState) {
        let (hasSpace, isBroken) = state.withLock { ($0.count < $0.ring.count, $0.isReaderClosed) }
        output.setReady(hasSpace)
        if isBroken { output.failed(.brokenPair) }
    }

    func close(_ side: StreamState.Direction) {
        let (reader, writer) = state.withLock { state in
            if side == .input { state.isReaderClosed = true } else { state.isWriterClosed = true }
            return (state.reader, state.writer)
        }
        switch side {
        // The reader gets what is there, and then the end.
        case .output: input.update { settleInput(&$0) }
        // Nobody will ever make space.
        case .input: output.update { settleOutput(&$0) }
        }
        reader?.signal()
        writer?.signal()
    }

    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {}
    func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {}

    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let gate = DispatchSemaphore(value: 0)
        while true {
            let (result, writer) = state.withLock { state -> (Int?, DispatchSemaphore?) in
                let count = state.take(buffer)
                state.reader = nil
                if count > 0 { return (count, state.writer) }
                if state.isWriterClosed { return (0, nil) }
                if state.isReaderClosed { return (-1, nil) }
                state.reader = gate
                return (nil, nil)
            }
            guard let result else {
                gate.wait()
                continue
            }
            input.update { input in
                input.used(isReady: false)
                settleInput(&input)
            }
            output.update { settleOutput(&$0) }
            writer?.signal()
            return result
        }
    }

    var hasBytesAvailable: Bool { state.withLock { $0.count > 0 } }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        let gate = DispatchSemaphore(value: 0)
        while true {
            let (result, reader) = state.withLock { state -> (Int?, DispatchSemaphore?) in
                state.writer = nil
                if state.isReaderClosed || state.isWriterClosed { return (-1, nil) }
                let count = state.put(bytes)
                if count > 0 { return (count, state.reader) }
                state.writer = gate
                return (nil, nil)
            }
            guard let result else {
                gate.wait()
                continue
            }
            output.update { output in
                output.used(isReady: false)
                settleOutput(&output)
            }
            input.update { settleInput(&$0) }
            reader?.signal()
            return result
        }
    }

    var hasSpaceAvailable: Bool {
        state.withLock { $0.count < $0.ring.count && !$0.isReaderClosed }
    }

    // MARK: - Properties

    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? { nil }
    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool { false }
}

extension BoundPair.State {
    fileprivate mutating func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let taken = min(count, buffer.count)
        let straight = min(taken, ring.count - first)
        ring.withUnsafeBytes { ring in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: ring[first..<(first + straight)]))
            UnsafeMutableRawBufferPointer(rebasing: buffer[straight...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: ring[..<(taken - straight)]))
        }
        first = (first + taken) % ring.count
        count -= taken
        return taken
    }

    fileprivate mutating func put(_ bytes: UnsafeRawBufferPointer) -> Int {
        let given = min(ring.count - count, bytes.count)
        let start = (first + count) % ring.count
        let straight = min(given, ring.count - start)
        ring.withUnsafeMutableBytes { ring in
            UnsafeMutableRawBufferPointer(rebasing: ring[start...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<straight]))
            ring.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[straight..<given]))
        }
        count += given
        return given
    }
}

extension NSError {
    fileprivate static var brokenPair: NSError {
        .posix(EPIPE, "the other end of the bound pair was closed: nobody will read what is written")
    }
}

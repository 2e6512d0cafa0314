internal import RondoCore

/// The writing side of two streams over one connection: writes bytes, and checks whether there is space for
/// more.
///
/// Protected by the pair's lock, like the channel that is passed in.
struct SocketWriter {
    /// The state of the check whether there is space after a write that was accepted in full.
    private enum Check: UInt8 {
        case done
        /// The write in progress must schedule it.
        case wanted
        /// A `SpaceCheck` of the loop, or the writing thread, is going to do it.
        case scheduled
        case inProgress
    }

    let core: StreamCore
    /// The reason why nothing can be written any more. It wakes the waiting threads: the call of another
    /// thread may have found it, and the channel, which has no interest any more, gives their loops no event.
    private(set) var failure: NSError? { didSet { waiting?.wakeUp() } }
    /// The threads that wait in a read or a write of the connection. Made by the pair when a thread waits for
    /// the first time. Here, because a failure wakes them.
    var waiting: WaitingThreads?
    /// True while the client's stream is open: from its `open()` to its `close()`.
    private(set) var isOpen = false
    /// True if the stream was open and was closed, perhaps while the input is still read.
    private(set) var hasEnded = false
    private var check = Check.done

    init(_ core: StreamCore) { self.core = core }

    // MARK: - Opening and closing

    mutating func open() { isOpen = true }

    /// - Returns: False if it was not open.
    mutating func close() -> Bool {
        guard isOpen else { return false }
        (isOpen, hasEnded) = (false, true)
        return true
    }

    /// Records the loss of the connection.
    mutating func fail(_ error: NSError) {
        failure = failure ?? error
        if isOpen { core.update { $0.failed(error) } }
    }

    /// Records that there is no connection, and will be none.
    mutating func refuse(_ error: NSError) { failure = error }

    // MARK: - Writing

    /// Attempts to write `total` bytes once; nil: the caller must wait.
    mutating func write(
        _ total: Int, to channel: SocketChannel?, by write: (SocketChannel) throws(ChannelError) -> Int
    ) -> Int? {
        guard failure == nil, core.mayTransfer else { return -1 }
        guard let channel, channel.isOpen else { return nil }
        do throws(ChannelError) {
            let count = try write(channel)
            core.update { $0.used(isReady: false) }
            // A write that was accepted in full may have filled the socket, or may partly wait in this
            // process. If space were reported now, the client's next write could block for the peer, and with
            // it everything else in its loop.
            if count < total {
                channel.wantsWrite = true
                if check == .inProgress { check = .done }
            } else if check != .scheduled {
                check = .wanted
            }
            return count > 0 ? count : nil
        } catch {
            // Bytes that the peer has sent before can still be read; then the input fails, too.
            let error = error.streamError
            failure = error
            core.update { $0.failed(error) }
            channel.wantsWrite = false
            return -1
        }
    }

    // MARK: - Space

    /// Whether a check of the space is still to be done.
    var awaitsCheck: Bool { check != .done }

    /// Assigns the check to the caller, if the last write has left one.
    ///
    /// - Returns: False if there is nothing to be done.
    mutating func scheduleCheck() -> Bool {
        guard check == .wanted else { return false }
        check = .scheduled
        return true
    }

    /// - Returns: False if no check is scheduled.
    mutating func beginCheck() -> Bool {
        guard check == .scheduled else { return false }
        check = .inProgress
        return true
    }

    mutating func endCheck(found: Bool, _ channel: SocketChannel?) {
        // A write since the start of the check has changed its state, and takes care of the space itself.
        guard check == .inProgress else { return }
        check = .done
        // If the descriptor was closed meanwhile, its number may be another connection's. The channel is not
        // open then, and a pair never gets a second channel.
        guard let channel, channel.isOpen, isOpen, failure == nil else { return }
        if found { core.update { $0.setReady(true) } } else { channel.wantsWrite = true }
    }

    func hasSpace(_ channel: SocketChannel?) -> Bool {
        guard failure == nil, channel?.hasSpace ?? false else { return false }
        core.update { $0.setReady(true) }
        return true
    }
}

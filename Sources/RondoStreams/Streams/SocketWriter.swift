internal import RondoCore

/// The writing side of two streams over one connection: hands bytes over, and finds out whether there is space for more.
///
/// Behind the pair's lock, as the channel that is handed in.
struct SocketWriter {
    /// Whether it is known if there is space after what was written in full.
    private enum Check: UInt8 {
        case done
        /// Left to the write that is under way.
        case wanted
        /// Left to a `SpaceCheck` of the loop, or to the writing thread, and not begun.
        case scheduled
        case underWay
    }

    let core: StreamCore
    /// Why nothing can be written any more.
    private(set) var failure: NSError?
    /// The client has opened the stream, and not closed it.
    private(set) var isOpen = false
    /// The stream was open and was closed, while the input is still read.
    private(set) var hasEnded = false
    private var check = Check.done

    init(_ core: StreamCore) { self.core = core }

    // MARK: - Opening and closing

    mutating func open() { isOpen = true }

    /// - Returns: False: it was not open.
    mutating func close() -> Bool {
        guard isOpen else { return false }
        (isOpen, hasEnded) = (false, true)
        return true
    }

    /// The connection is lost.
    mutating func fail(_ error: NSError) {
        failure = failure ?? error
        if isOpen { core.update { $0.failed(error) } }
    }

    /// There is no connection, and will be none.
    mutating func refuse(_ error: NSError) { failure = error }

    // MARK: - Writing

    /// One attempt to write `total` bytes; nil: wait.
    mutating func write(
        _ total: Int, to channel: SocketChannel?, by write: (SocketChannel) throws(ChannelError) -> Int
    ) -> Int? {
        guard failure == nil, core.mayTransfer else { return -1 }
        guard let channel, channel.isOpen else { return nil }
        do throws(ChannelError) {
            let count = try write(channel)
            core.update { $0.used(isReady: false) }
            // What was taken in full may have filled the socket, or be here still in part: told of space, the
            // client would be made to wait for the peer, and everything else in its loop as well.
            if count < total {
                channel.wantsWrite = true
                if check == .underWay { check = .done }
            } else if check != .scheduled {
                check = .wanted
            }
            return count > 0 ? count : nil
        } catch {
            // What the peer has sent before is still read; then the input fails, too.
            let error = error.streamError
            failure = error
            core.update { $0.failed(error) }
            channel.wantsWrite = false
            return -1
        }
    }

    // MARK: - Space

    /// Whether a check of the space is wanted, and not done.
    var awaitsCheck: Bool { check != .done }

    /// Has the check done by the caller, if the last write has left one.
    ///
    /// - Returns: False: there is nothing to be done.
    mutating func scheduleCheck() -> Bool {
        guard check == .wanted else { return false }
        check = .scheduled
        return true
    }

    /// - Returns: False: no check is scheduled.
    mutating func beginCheck() -> Bool {
        guard check == .scheduled else { return false }
        check = .underWay
        return true
    }

    mutating func endCheck(found: Bool, _ channel: SocketChannel?) {
        // A write that came since the check began sees to it itself.
        guard check == .underWay else { return }
        check = .done
        // A descriptor that was closed meanwhile may be another connection's: then the channel is not open any more, and
        // there is never another one.
        guard let channel, channel.isOpen, isOpen, failure == nil else { return }
        if found { core.update { $0.setReady(true) } } else { channel.wantsWrite = true }
    }

    func hasSpace(_ channel: SocketChannel?) -> Bool {
        guard failure == nil, channel?.hasSpace ?? false else { return false }
        core.update { $0.setReady(true) }
        return true
    }
}

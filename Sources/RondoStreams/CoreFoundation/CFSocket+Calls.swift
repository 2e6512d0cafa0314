internal import Glibc
internal import RondoCore
internal import RondoMutex

// The callbacks, on the thread of a loop that holds the source.
extension CFSocket {
    /// The seconds for which nothing is accepted after descriptors or memory have run out.
    private static let pauseSeconds: TimeInterval = 0.1

    /// A callback with its arguments.
    private enum Call {
        case plain(CFSocketCallBackType)
        case accepted(Int32, Data)
        case bytes(Data, Data)
        case connected(Int32)

        var type: CFSocketCallBackType {
            switch self {
            case .plain(let type): type
            case .accepted: .acceptCallBack
            case .bytes: .dataCallBack
            case .connected: .connectCallBack
            }
        }
    }

    /// Makes one callback only, because it may take the source out of the mode, and a second one would then
    /// be made in a mode that does not hold the source. Whatever else is ready is still ready in the next
    /// pass.
    func perform(_ ready: RunLoop.Source.Interest) {
        if handle.isLost { return invalidate(closes: false) }
        for turn in state.withLock({ $0.callBacks.turns(for: ready) }) where serve(turn) { return }
    }

    /// - Returns: Whether a callback was made.
    private func serve(_ turn: SocketCallBacks.Turn) -> Bool {
        let found = state.withLock { state -> (Call, CallBack?)? in
            guard state.isValid else { return nil }
            let call =
                switch turn {
                case .connection: connection(&state)
                case .reading: reading(&state)
                case .writing: writing(&state)
                }
            if let call { state.callBacks.begin(call.type) }
            state.apply()
            return call.map { ($0, state.callBack) }
        }
        guard let (call, callBack) = found else { return false }
        hand(call, to: callBack)
        let hasEnded = state.withLock { state in
            state.callBacks.end(call.type)
            state.apply()
            return state.callBacks.hasEnded
        }
        // As Core Foundation does after the empty data that report the end.
        if hasEnded { invalidate() }
        return true
    }

    private func hand(_ call: Call, to callBack: CallBack?) {
        guard let callBack else {
            if case .accepted(let native, _) = call { close(native) }
            return
        }
        switch call {
        case .plain(let type): callBack(self, type, nil, nil)
        case .accepted(let native, let address):
            withUnsafePointer(to: native) {
                callBack(self, .acceptCallBack, NSData(data: address), UnsafeRawPointer($0))
            }
        case .bytes(let bytes, let address):
            let object = NSData(data: bytes)
            // Unretained: the object outlives the call.
            withExtendedLifetime(object) {
                let pointer = UnsafeRawPointer(Unmanaged.passUnretained(object).toOpaque())
                callBack(self, .dataCallBack, NSData(data: address), pointer)
            }
        case .connected(0): callBack(self, .connectCallBack, nil, nil)
        case .connected(let code):
            withUnsafePointer(to: code) { callBack(self, .connectCallBack, nil, UnsafeRawPointer($0)) }
        }
    }

    // MARK: Finding the next callback, under the lock

    private func connection(_ state: inout State) -> Call? {
        if state.callBacks.phase == .connecting(threadWaits: false),
            let code = handle.outcomeOfConnecting(leavesErrors: state.callBacks.leavesErrors)
        {
            state.callBacks.connected(code, inBackground: true)
        }
        return state.callBacks.takeOutcome().map { .connected($0) }
    }

    private func reading(_ state: inout State) -> Call? {
        // Another loop's callback may have read the bytes.
        guard state.callBacks.mayRead, SocketCalls.poll(handle.descriptor, for: POLLIN) != 0 else {
            return nil
        }
        switch state.callBacks.types.reading {
        case .acceptCallBack: return accept(&state)
        case .dataCallBack: return receive(&state)
        default: return .plain(.readCallBack)
        }
    }

    private func writing(_ state: inout State) -> Call? {
        guard state.callBacks.mayWrite, SocketCalls.isWritable(handle.descriptor) else { return nil }
        // Reading the error clears it; otherwise the socket would be ready again and again (rule CS-13).
        if !state.callBacks.leavesErrors { _ = handle.takeError() }
        return .plain(.writeCallBack)
    }

    private func accept(_ state: inout State) -> Call? {
        switch handle.accept() {
        case .connection(let native, let address): return .accepted(native, address)
        case .none: return nil
        case .failed:
            // The socket would be ready again at once, over and over.
            pause(&state)
            return nil
        }
    }

    private func receive(_ state: inout State) -> Call? {
        switch handle.receive() {
        case .bytes(let bytes, let address): return .bytes(bytes, address)
        case .none: return nil
        case .end(let address):
            state.callBacks.endConnection()
            return .bytes(Data(), address)
        }
    }

    /// Pauses accepting. Every loop that holds the source gets a timer that ends the pause, because any of
    /// them may stop running.
    private func pause(_ state: inout State) {
        state.isPaused = true
        let modes = state.source?.scheduledModes ?? []
        var loops: [RunLoop] = []
        for scheduled in modes where !loops.contains(scheduled.loop) {
            loops.append(scheduled.loop)
            let timer = Timer(timeInterval: Self.pauseSeconds, repeats: false) { [weak self] _ in
                self?.resume()
            }
            for other in modes where other.loop === scheduled.loop {
                scheduled.loop.add(timer, forMode: other.mode)
            }
        }
    }
}

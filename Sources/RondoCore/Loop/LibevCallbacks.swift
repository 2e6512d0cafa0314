internal import CRondoEv

// The functions that libev calls. `ev_userdata` of an `ev_loop` is its `ModeLoop`, `Unmanaged` to pass
// through C and unretained: the `ModeLoop` owns the `ev_loop` and outlives it.

/// libev's callback for every descriptor: records that it is ready. The pass calls user code later.
func ioReadiness(loop: OpaquePointer, io: UnsafeMutablePointer<ev_io>, events: Int32) {
    // If the kernel has refused a descriptor, errno still holds the reason.
    let code = events & rondo_ev_error == 0 ? 0 : errno
    guard let userdata = ev_userdata(loop) else { return }
    Unmanaged<ModeLoop>.fromOpaque(userdata)._withUnsafeGuaranteedRef {
        if events & rondo_ev_error == 0 {
            $0.report(WatcherPointer(io), events: events)
        } else {
            $0.noteRefusal(of: WatcherPointer(io), code: code)
        }
    }
}

/// libev's callback before it makes a new epoll set.
func epollSetWillBeRemade(_ loop: OpaquePointer) {
    guard let userdata = ev_userdata(loop) else { return }
    Unmanaged<ModeLoop>.fromOpaque(userdata)._withUnsafeGuaranteedRef { $0.willBeRemade() }
}

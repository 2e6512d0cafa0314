// Core Foundation's functions for hosts: thin, no logic. `CFHost` itself is in RondoStreams.

/// The context that a host's client gets.
public typealias CFHostClientContext = CFCallBackContext

/// Gets the host, the kind of information looked up, the error (both its numbers are 0 on success), and the
/// context's `info`. Called on the thread of a loop on which the host is scheduled, in a mode of its
/// schedule.
public typealias CFHostClientCallBack =
    @Sendable (CFHost, CFHostInfoType, UnsafePointer<CFStreamError>?, UnsafeMutableRawPointer?) -> Void

/// The domain of an errno.
public let kCFStreamErrorDomainPOSIX = CFStreamError.posixDomain
/// The domain of a result of `getaddrinfo` or `getnameinfo`, an `EAI_` number.
public let kCFStreamErrorDomainNetDB = Int32(CFStreamError.netDatabaseDomain)

public func CFHostGetTypeID() -> CFTypeID { CFTypeID(bitPattern: ObjectIdentifier(CFHost.self)) }

// MARK: - Making

/// A host given by its name, or by a numeric address.
public func CFHostCreateWithName(_ allocator: CFAllocator?, _ hostname: CFString) -> Unmanaged<CFHost> {
    .passRetained(CFHost(name: hostname as String))
}

/// A host given by a `struct sockaddr`.
public func CFHostCreateWithAddress(_ allocator: CFAllocator?, _ addr: CFData) -> Unmanaged<CFHost> {
    .passRetained(CFHost(address: Data(copying: addr)))
}

/// A host with the information that `host` has, but without its client and its schedule.
public func CFHostCreateCopy(_ alloc: CFAllocator?, _ host: CFHost) -> Unmanaged<CFHost> {
    .passRetained(CFHost(copying: host))
}

// MARK: - Looking up

/// Looks up the addresses of a name, or the name of an address (rule CS-19).
///
/// If the host has a client and is scheduled, this returns at once, and the client gets the outcome later.
/// Otherwise it blocks the thread until the look-up has ended.
/// - Parameter error: Set to the error; both its numbers are 0 on success.
/// - Returns: Whether the look-up has begun, or has succeeded. A host has one look-up at a time.
@discardableResult
public func CFHostStartInfoResolution(
    _ theHost: CFHost, _ info: CFHostInfoType, _ error: UnsafeMutablePointer<CFStreamError>?
) -> Bool {
    let found = theHost.start(info)
    error?.pointee = found
    return found == CFStreamError()
}

/// Cancels the current look-up of `info`: the client is not called, and a waiting thread continues.
public func CFHostCancelInfoResolution(_ theHost: CFHost, _ info: CFHostInfoType) { theHost.cancel(info) }

/// The addresses, each a `CFData` with a `struct sockaddr`; nil if they have not been looked up yet. The
/// array is valid until the next look-up has ended.
public func CFHostGetAddressing(
    _ theHost: CFHost, _ hasBeenResolved: UnsafeMutablePointer<DarwinBoolean>?
) -> Unmanaged<CFArray>? {
    get(.addresses, of: theHost, hasBeenResolved)
}

/// The names, each a string; nil if they have not been looked up yet. The array is valid until the next
/// look-up has ended.
public func CFHostGetNames(
    _ theHost: CFHost, _ hasBeenResolved: UnsafeMutablePointer<DarwinBoolean>?
) -> Unmanaged<CFArray>? {
    get(.names, of: theHost, hasBeenResolved)
}

private func get(
    _ info: CFHostInfoType, of host: CFHost, _ hasBeenResolved: UnsafeMutablePointer<DarwinBoolean>?
) -> Unmanaged<CFArray>? {
    let array = host.array(info)
    hasBeenResolved?.pointee = DarwinBoolean(array != nil)
    // Unretained: the host retains the array.
    return array.map { .passUnretained($0) }
}

// MARK: - Client and schedule

/// Sets the callback that gets the outcome of look-ups on the loops on which the host is scheduled; nil
/// removes it. The context's `info` is retained, if the context has a retain function, until the client is
/// replaced or removed.
///
/// - Returns: True.
@discardableResult
public func CFHostSetClient(
    _ theHost: CFHost, _ clientCB: CFHostClientCallBack?,
    _ clientContext: UnsafeMutablePointer<CFHostClientContext>?
) -> Bool {
    guard let clientCB else {
        theHost.setClient(nil)
        return true
    }
    let held = HeldContext(clientContext?.pointee ?? CFHostClientContext(), order: 0)
    theHost.setClient { host, info, error in
        withUnsafePointer(to: error) { clientCB(host, info, $0, held.info) }
    }
    return true
}

/// `runLoopMode` is the mode's `rawValue`, which is a String here.
public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: String) {
    theHost.schedule(in: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFString) {
    theHost.schedule(in: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFRunLoopMode) {
    theHost.schedule(in: runLoop, forMode: runLoopMode)
}

/// `runLoopMode` is the mode's `rawValue`, which is a String here.
public func CFHostUnscheduleFromRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: String) {
    theHost.unschedule(from: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostUnscheduleFromRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFString) {
    theHost.unschedule(from: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostUnscheduleFromRunLoop(
    _ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFRunLoopMode
) {
    theHost.unschedule(from: runLoop, forMode: runLoopMode)
}

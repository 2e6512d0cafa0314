// Core Foundation's functions of hosts: thin, no logic. `CFHost` itself is in RondoStreams.

/// The context that is handed to a host's client.
public typealias CFHostClientContext = CFCallBackContext

/// Gets the host, what was looked up, why that has failed (both numbers are 0 if it has not), and the context's `info`. On
/// the thread of a loop that the host is scheduled on, in a mode that it is scheduled in.
public typealias CFHostClientCallBack =
    @Sendable (CFHost, CFHostInfoType, UnsafePointer<CFStreamError>?, UnsafeMutableRawPointer?) -> Void

/// Of an errno.
public let kCFStreamErrorDomainPOSIX = CFStreamError.posixDomain
/// Of an answer of `getaddrinfo` or `getnameinfo`, an `EAI_` number.
public let kCFStreamErrorDomainNetDB = Int32(CFStreamError.netDatabaseDomain)

public func CFHostGetTypeID() -> CFTypeID { CFTypeID(bitPattern: ObjectIdentifier(CFHost.self)) }

// MARK: - Making

/// A host by its name, or by an address in numbers.
public func CFHostCreateWithName(_ allocator: CFAllocator?, _ hostname: CFString) -> Unmanaged<CFHost> {
    .passRetained(CFHost(name: hostname as String))
}

/// A host by a `struct sockaddr`.
public func CFHostCreateWithAddress(_ allocator: CFAllocator?, _ addr: CFData) -> Unmanaged<CFHost> {
    .passRetained(CFHost(address: Data(copying: addr)))
}

/// A host that knows what `host` does, and has neither its client nor its schedule.
public func CFHostCreateCopy(_ alloc: CFAllocator?, _ host: CFHost) -> Unmanaged<CFHost> {
    .passRetained(CFHost(copying: host))
}

// MARK: - Looking up

/// Looks up the addresses of a name, or the name of an address (rule CS-19).
///
/// A host with a client that is scheduled tells the client the outcome, and this returns at once. Any other one blocks the
/// thread until it is there.
/// - Parameter error: Where to write why it has failed; both numbers are 0 if it has not.
/// - Returns: Whether it has begun, or has succeeded. A host has one look-up at a time.
@discardableResult
public func CFHostStartInfoResolution(
    _ theHost: CFHost, _ info: CFHostInfoType, _ error: UnsafeMutablePointer<CFStreamError>?
) -> Bool {
    let found = theHost.start(info)
    error?.pointee = found
    return found == CFStreamError()
}

/// Gives up the look-up of `info` that is under way: the client is not told, and a thread that waits goes on.
public func CFHostCancelInfoResolution(_ theHost: CFHost, _ info: CFHostInfoType) { theHost.cancel(info) }

/// The addresses, each a `CFData` with a `struct sockaddr`; nil: they were not looked up yet. The array lives until the next
/// look-up has ended.
public func CFHostGetAddressing(
    _ theHost: CFHost, _ hasBeenResolved: UnsafeMutablePointer<DarwinBoolean>?
) -> Unmanaged<CFArray>? {
    get(.addresses, of: theHost, hasBeenResolved)
}

/// The names, each a string; nil: they were not looked up yet. The array lives until the next look-up has ended.
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
    // Unretained: the host has it.
    return array.map { .passUnretained($0) }
}

// MARK: - Client and schedule

/// Has `clientCB` called with the outcome of look-ups, where the host is scheduled; nil takes the client away. The context's
/// `info` is retained, if it says how, as long as it is the client's.
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

/// The mode's `rawValue`, which is a String here.
public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: String) {
    theHost.schedule(in: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFString) {
    theHost.schedule(in: runLoop, forMode: CFRunLoopMode(runLoopMode))
}

public func CFHostScheduleWithRunLoop(_ theHost: CFHost, _ runLoop: CFRunLoop, _ runLoopMode: CFRunLoopMode) {
    theHost.schedule(in: runLoop, forMode: runLoopMode)
}

/// The mode's `rawValue`, which is a String here.
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

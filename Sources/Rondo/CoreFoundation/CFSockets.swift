// Core Foundation's functions for sockets: thin, no logic. `CFSocket` itself is in RondoStreams.

public import Glibc

/// The context that a socket's callback gets.
public typealias CFSocketContext = CFCallBackContext

/// Gets the socket, the type of the callback, an address (of the accepted connection, or of the sender), the
/// data described at `CFSocketCallBackType`, and the context's `info`. Called on the thread of a loop that
/// holds the source.
public typealias CFSocketCallBack =
    @Sendable (CFSocket?, CFSocketCallBackType, CFData?, UnsafeRawPointer?, UnsafeMutableRawPointer?) -> Void

/// A family, type, protocol and address.
public struct CFSocketSignature {
    public var protocolFamily: Int32
    public var socketType: Int32
    public var `protocol`: Int32
    /// A `struct sockaddr`, which has to live as long as the signature is used.
    public var address: Unmanaged<CFData>!

    /// Zeros, and no address.
    public init() { self.init(protocolFamily: 0, socketType: Int32(0), protocol: 0, address: nil) }

    public init(
        protocolFamily: Int32, socketType: Int32, protocol: some BinaryInteger, address: Unmanaged<CFData>!
    ) {
        self.protocolFamily = protocolFamily
        self.socketType = socketType
        self.protocol = Int32(clamping: `protocol`)
        self.address = address
    }

    /// Takes `SOCK_STREAM` and its kin in the type that glibc gives them.
    public init(
        protocolFamily: Int32, socketType: __socket_type, protocol: some BinaryInteger,
        address: Unmanaged<CFData>!
    ) {
        self.init(
            protocolFamily: protocolFamily, socketType: Int32(socketType.rawValue), protocol: `protocol`,
            address: address)
    }
}

/// The callbacks that are enabled again automatically (rule CS-7), for `CFSocketSetSocketFlags`.
public let kCFSocketAutomaticallyReenableReadCallBack: CFOptionFlags = 1
public let kCFSocketAutomaticallyReenableAcceptCallBack: CFOptionFlags = 2
public let kCFSocketAutomaticallyReenableDataCallBack: CFOptionFlags = 3
public let kCFSocketAutomaticallyReenableWriteCallBack: CFOptionFlags = 8
/// The socket does not read SO_ERROR before a callback (rule CS-13).
public let kCFSocketLeaveErrors: CFOptionFlags = 64
/// `CFSocketInvalidate` closes the handle.
public let kCFSocketCloseOnInvalidate: CFOptionFlags = 128

public func CFSocketGetTypeID() -> CFTypeID { CFTypeID(bitPattern: ObjectIdentifier(CFSocket.self)) }

// MARK: - Making

/// A new socket; 0 or less for the family, type or protocol means TCP over IPv4.
///
/// It lives until it is invalidated (rule CS-12).
/// - Parameter callBackTypes: Raw values of `CFSocketCallBackType`.
/// - Returns: Nil if the system refuses a socket.
public func CFSocketCreate(
    _ allocator: CFAllocator?, _ protocolFamily: Int32, _ socketType: Int32, _ protocol: some BinaryInteger,
    _ callBackTypes: CFOptionFlags, _ callout: CFSocketCallBack?, _ context: UnsafePointer<CFSocketContext>?
) -> CFSocket! {
    let native = CFSocket.makeNative(protocolFamily, socketType, Int32(clamping: `protocol`))
    return CFSocketCreateWithNative(allocator, native, callBackTypes, callout, context)
}

/// The same with `SOCK_STREAM` and its kin in the type that glibc gives them; on Apple's systems they are
/// numbers.
public func CFSocketCreate(
    _ allocator: CFAllocator?, _ protocolFamily: Int32, _ socketType: __socket_type,
    _ protocol: some BinaryInteger, _ callBackTypes: CFOptionFlags, _ callout: CFSocketCallBack?,
    _ context: UnsafePointer<CFSocketContext>?
) -> CFSocket! {
    CFSocketCreate(
        allocator, protocolFamily, Int32(socketType.rawValue), `protocol`, callBackTypes, callout, context)
}

/// A socket for a handle, which it closes when it is invalidated. If the handle already has a valid socket,
/// that one is returned (rule CS-11); it keeps its own types, callback and context.
///
/// - Returns: Nil if there is no such descriptor.
public func CFSocketCreateWithNative(
    _ allocator: CFAllocator?, _ sock: CFSocketNativeHandle, _ callBackTypes: CFOptionFlags,
    _ callout: CFSocketCallBack?, _ context: UnsafePointer<CFSocketContext>?
) -> CFSocket! {
    if let socket = CFSocket.existing(sock) { return socket }
    let held = HeldContext(context?.pointee ?? CFSocketContext(), order: 0)
    var callBack: CFSocket.CallBack?
    if let callout { callBack = { callout($0, $1, $2, $3, held.info) } }
    return CFSocket.socket(
        sock, CFSocketCallBackType(rawValue: callBackTypes), label: held.copyLabel(), attachment: held,
        callBack)
}

/// A new socket that is bound to the signature's address, and listens if it is a stream socket; nil if that
/// fails.
public func CFSocketCreateWithSocketSignature(
    _ allocator: CFAllocator?, _ signature: UnsafePointer<CFSocketSignature>, _ callBackTypes: CFOptionFlags,
    _ callout: CFSocketCallBack?, _ context: UnsafePointer<CFSocketContext>?
) -> CFSocket! {
    CFSocketCreate(allocator, signature.pointee, callBackTypes, callout, context) {
        CFSocketSetAddress($0, $1)
    }
}

/// A new socket that is connected to the signature's address by `CFSocketConnectToAddress`; nil if that
/// fails.
public func CFSocketCreateConnectedToSocketSignature(
    _ allocator: CFAllocator?, _ signature: UnsafePointer<CFSocketSignature>, _ callBackTypes: CFOptionFlags,
    _ callout: CFSocketCallBack?, _ context: UnsafePointer<CFSocketContext>?, _ timeout: CFTimeInterval
) -> CFSocket! {
    CFSocketCreate(allocator, signature.pointee, callBackTypes, callout, context) {
        CFSocketConnectToAddress($0, $1, timeout)
    }
}

/// A socket of the signature's kind, for which `prepare` has succeeded with the signature's address;
/// otherwise nil, and the socket is invalidated.
private func CFSocketCreate(
    _ allocator: CFAllocator?, _ signature: CFSocketSignature, _ callBackTypes: CFOptionFlags,
    _ callout: CFSocketCallBack?, _ context: UnsafePointer<CFSocketContext>?,
    _ prepare: (CFSocket, CFData?) -> CFSocketError
) -> CFSocket? {
    let socket = CFSocketCreate(
        allocator, signature.protocolFamily, signature.socketType, signature.protocol, callBackTypes, callout,
        context)
    guard let socket else { return nil }
    if prepare(socket, signature.address?.takeUnretainedValue()) == .success { return socket }
    CFSocketInvalidate(socket)
    return nil
}

// MARK: - Callbacks

/// The socket's only source, to be added to run loops; the order is ignored (rule CS-2).
public func CFSocketCreateRunLoopSource(
    _ allocator: CFAllocator?, _ s: CFSocket!, _ order: CFIndex
) -> CFRunLoopSource! {
    s?.source()
}

/// Enables callbacks once, without changing the flags (rule CS-7).
public func CFSocketEnableCallBacks(_ s: CFSocket!, _ callBackTypes: CFOptionFlags) {
    s?.enable(CFSocketCallBackType(rawValue: callBackTypes))
}

/// Disables callbacks until they are enabled again, without changing the flags.
public func CFSocketDisableCallBacks(_ s: CFSocket!, _ callBackTypes: CFOptionFlags) {
    s?.disable(CFSocketCallBackType(rawValue: callBackTypes))
}

public func CFSocketGetSocketFlags(_ s: CFSocket!) -> CFOptionFlags { s?.flags ?? 0 }

public func CFSocketSetSocketFlags(_ s: CFSocket!, _ flags: CFOptionFlags) { s?.flags = flags }

// MARK: - Addresses and bytes

/// Binds the socket, and listens if it is a stream socket (rule CS-15).
@discardableResult
public func CFSocketSetAddress(_ s: CFSocket!, _ address: CFData!) -> CFSocketError {
    guard let s, let address else { return .error }
    return s.setAddress(Data(copying: address))
}

/// Connects the socket: in the background if `timeout` is negative. Otherwise it blocks for at most `timeout`
/// seconds, or, if that is 0, as long as the kernel tries (rule CS-9).
@discardableResult
public func CFSocketConnectToAddress(
    _ s: CFSocket!, _ address: CFData!, _ timeout: CFTimeInterval
) -> CFSocketError {
    guard let s, let address else { return .error }
    return s.connect(to: Data(copying: address), timeout: timeout)
}

/// Sends all of `data` or fails (rule CS-10). `address` is for datagrams; nil: the address to which the
/// socket is connected.
///
/// - Parameter timeout: Seconds for which the thread may be blocked; 0 or less: no limit.
@discardableResult
public func CFSocketSendData(
    _ s: CFSocket!, _ address: CFData!, _ data: CFData!, _ timeout: CFTimeInterval
) -> CFSocketError {
    guard let s, let data else { return .error }
    return s.send(
        Data(copying: data), to: address.map { Data(copying: $0) }, timeout: timeout)
}

public func CFSocketCopyAddress(_ s: CFSocket!) -> CFData! { s?.address.map { NSData(data: $0) } }

/// Returns nil if the socket is not connected.
public func CFSocketCopyPeerAddress(_ s: CFSocket!) -> CFData! { s?.peerAddress.map { NSData(data: $0) } }

// MARK: - State

/// Copies the context with which `s` was made, without retaining `info`; does nothing if `s` is invalid.
public func CFSocketGetContext(_ s: CFSocket!, _ context: UnsafeMutablePointer<CFSocketContext>!) {
    HeldContext.copy(s?.attachment, to: context)
}

/// Returns -1 once `s` is invalid.
public func CFSocketGetNative(_ s: CFSocket!) -> CFSocketNativeHandle { s?.native ?? -1 }

/// Removes the source everywhere, ends all callbacks, and closes the handle unless the flags prevent it (rule
/// CS-12).
public func CFSocketInvalidate(_ s: CFSocket!) { s?.invalidate() }

public func CFSocketIsValid(_ s: CFSocket!) -> Bool { s?.isValid ?? false }

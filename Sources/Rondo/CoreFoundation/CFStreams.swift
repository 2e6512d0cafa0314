// Core Foundation's functions for streams: thin, no logic. As in Core Foundation, the streams of a pair are
// returned retained: take them by `takeRetainedValue()`. Clients, which get a stream's events, are in
// CFStreamClient.swift.

internal import Glibc

// MARK: - Making

/// `InputStream(url:)`; nil if the URL does not name a file.
public func CFReadStreamCreateWithFile(_ alloc: CFAllocator?, _ fileURL: URL!) -> CFReadStream! {
    CFReadStream(url: fileURL)
}

// Disfavoured for nil and other values that fit both forms: otherwise such calls would be ambiguous.
/// The same, for `url as CFURL`.
@_disfavoredOverload
public func CFReadStreamCreateWithFile(_ alloc: CFAllocator?, _ fileURL: CFURL!) -> CFReadStream! {
    CFReadStream(url: fileURL as URL)
}

/// `InputStream(data:)` without a copy of the bytes: they must not change or be freed before the stream.
///
/// - Parameter bytesDeallocator: `kCFAllocatorNull` if the caller frees the bytes; otherwise they are freed,
///   by `free`, together with the stream.
public func CFReadStreamCreateWithBytesNoCopy(
    _ alloc: CFAllocator?, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex, _ bytesDeallocator: CFAllocator!
) -> CFReadStream! {
    guard let bytes, length >= 0 else { return nil }
    // Only the type is mutable: the stream does not write to the bytes.
    let start = UnsafeMutableRawPointer(mutating: bytes)
    let isKept = bytesDeallocator === kCFAllocatorNull
    return CFReadStream(data: Data(bytesNoCopy: start, count: length, deallocator: isKept ? .none : .free))
}

/// `OutputStream(url:append:)`; to append, set `kCFStreamPropertyAppendToFile` before it is opened.
public func CFWriteStreamCreateWithFile(_ alloc: CFAllocator?, _ fileURL: URL!) -> CFWriteStream! {
    CFWriteStream(url: fileURL, append: false)
}

// Disfavoured for nil and other values that fit both forms: otherwise such calls would be ambiguous.
/// The same, for `url as CFURL`.
@_disfavoredOverload
public func CFWriteStreamCreateWithFile(_ alloc: CFAllocator?, _ fileURL: CFURL!) -> CFWriteStream! {
    CFWriteStream(url: fileURL as URL, append: false)
}

/// `OutputStream(toBuffer:capacity:)`: `buffer` must outlive the stream.
public func CFWriteStreamCreateWithBuffer(
    _ alloc: CFAllocator?, _ buffer: UnsafeMutablePointer<UInt8>!, _ bufferCapacity: CFIndex
) -> CFWriteStream! {
    CFWriteStream(toBuffer: buffer, capacity: bufferCapacity)
}

/// `OutputStream(toMemory:)`; `kCFStreamPropertyDataWritten` is the data written so far.
public func CFWriteStreamCreateWithAllocatedBuffers(
    _ alloc: CFAllocator?, _ bufferAllocator: CFAllocator?
) -> CFWriteStream! {
    CFWriteStream(toMemory: ())
}

public func CFReadStreamGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFReadStream.self))
}

public func CFWriteStreamGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFWriteStream.self))
}

/// `Stream.getBoundStreams(withBufferSize:inputStream:outputStream:)`.
public func CFStreamCreateBoundPair(
    _ allocator: CFAllocator?, _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?, _ transferBufferSize: CFIndex
) {
    handOver(readStream, writeStream) {
        Stream.getBoundStreams(withBufferSize: transferBufferSize, inputStream: &$0, outputStream: &$1)
    }
}

/// `Stream.getStreamsToHost(withName:port:inputStream:outputStream:)`.
public func CFStreamCreatePairWithSocketToHost(
    _ allocator: CFAllocator?, _ host: CFString!, _ port: UInt32,
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?
) {
    handOver(readStream, writeStream) {
        Stream.getStreamsToHost(
            withName: host as String, port: Int(port), inputStream: &$0, outputStream: &$1)
    }
}

/// A native socket: a file descriptor.
public typealias CFSocketNativeHandle = Int32

/// `Stream.getStreams(onSocket:inputStream:outputStream:)`; the socket stays open at close (rule ST-40).
public func CFStreamCreatePairWithSocket(
    _ allocator: CFAllocator?, _ sock: CFSocketNativeHandle,
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?
) {
    handOver(readStream, writeStream) {
        Stream.getStreams(onSocket: sock, inputStream: &$0, outputStream: &$1)
    }
}

/// `Stream.getStreamsToHost(withName:port:inputStream:outputStream:)`, with the host's first name, or its
/// first address if it has no name. A host without either gives streams that fail when they are opened.
public func CFStreamCreatePairWithSocketToCFHost(
    _ alloc: CFAllocator?, _ host: CFHost, _ port: Int32,
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?
) {
    let name = host.array(.names)?.firstObject as? String
    let address = (host.array(.addresses)?.firstObject as? Data).flatMap(socketAddress)
    handOver(readStream, writeStream) {
        Stream.getStreamsToHost(
            withName: name ?? address?.host ?? "", port: Int(port), inputStream: &$0, outputStream: &$1)
    }
}

/// A pair to the signature's address, of the Internet or in the file system. Both streams are nil if that is
/// no such address, or if its sockets are not of the type `SOCK_STREAM`.
public func CFStreamCreatePairWithPeerSocketSignature(
    _ alloc: CFAllocator?, _ signature: UnsafePointer<CFSocketSignature>!,
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?
) {
    let bytes = signature.pointee.address.map { Data(copying: $0.takeUnretainedValue()) }
    let isStream = signature.pointee.socketType == Int32(SOCK_STREAM.rawValue)
    let address = isStream ? bytes.flatMap(socketAddress) : nil
    handOver(readStream, writeStream) { input, output in
        switch address {
        case .ipv4(_, let port), .ipv6(_, _, let port, _):
            Stream.getStreamsToHost(
                withName: address?.host ?? "", port: Int(port), inputStream: &input, outputStream: &output)
        case .unix(let path):
            Stream.getStreamsToUnixSocket(atPath: path, inputStream: &input, outputStream: &output)
        case nil: break
        }
    }
}

/// The address in the bytes of a `struct sockaddr`.
private func socketAddress(_ bytes: Data) -> SocketAddress? {
    bytes.withUnsafeBytes { SocketAddress(sockaddr: $0) }
}

/// Stores both streams of a pair, retained; a stream whose pointer is nil is released.
private func handOver(
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?,
    _ make: (inout InputStream?, inout OutputStream?) -> Void
) {
    var input: InputStream?
    var output: OutputStream?
    make(&input, &output)
    readStream?.pointee = input.map { .passRetained($0) }
    writeStream?.pointee = output.map { .passRetained($0) }
}

// MARK: - Dispatch queues

/// `InputStream.dispatchQueue` (rule ST-21); nil removes the stream from its queue.
public func CFReadStreamSetDispatchQueue(_ stream: CFReadStream!, _ q: DispatchQueue!) {
    stream.dispatchQueue = q
}

/// `OutputStream.dispatchQueue` (rule ST-21); nil removes the stream from its queue.
public func CFWriteStreamSetDispatchQueue(_ stream: CFWriteStream!, _ q: DispatchQueue!) {
    stream.dispatchQueue = q
}

public func CFReadStreamCopyDispatchQueue(_ stream: CFReadStream!) -> DispatchQueue! { stream.dispatchQueue }

public func CFWriteStreamCopyDispatchQueue(_ stream: CFWriteStream!) -> DispatchQueue! {
    stream.dispatchQueue
}

// MARK: - Schedules

public func CFReadStreamScheduleWithRunLoop(
    _ stream: CFReadStream!, _ runLoop: CFRunLoop!, _ runLoopMode: CFRunLoopMode!
) {
    stream.schedule(in: runLoop, forMode: runLoopMode)
}

public func CFReadStreamUnscheduleFromRunLoop(
    _ stream: CFReadStream!, _ runLoop: CFRunLoop!, _ runLoopMode: CFRunLoopMode!
) {
    stream.remove(from: runLoop, forMode: runLoopMode)
}

public func CFWriteStreamScheduleWithRunLoop(
    _ stream: CFWriteStream!, _ runLoop: CFRunLoop!, _ runLoopMode: CFRunLoopMode!
) {
    stream.schedule(in: runLoop, forMode: runLoopMode)
}

public func CFWriteStreamUnscheduleFromRunLoop(
    _ stream: CFWriteStream!, _ runLoop: CFRunLoop!, _ runLoopMode: CFRunLoopMode!
) {
    stream.remove(from: runLoop, forMode: runLoopMode)
}

// MARK: - Polling

/// Opens the stream; false if it was already open, or has failed at once.
@discardableResult
public func CFReadStreamOpen(_ stream: CFReadStream!) -> Bool {
    guard stream.streamStatus == .notOpen else { return false }
    stream.open()
    return stream.streamStatus != .error
}

public func CFReadStreamClose(_ stream: CFReadStream!) { stream.close() }

public func CFReadStreamGetStatus(_ stream: CFReadStream!) -> Stream.Status { stream.streamStatus }

public func CFReadStreamHasBytesAvailable(_ stream: CFReadStream!) -> Bool { stream.hasBytesAvailable }

@discardableResult
public func CFReadStreamRead(
    _ stream: CFReadStream!, _ buffer: UnsafeMutablePointer<UInt8>!, _ bufferLength: CFIndex
) -> CFIndex {
    stream.read(buffer, maxLength: bufferLength)
}

/// The bytes in the stream's own memory, without a copy: at most `maxBytesToRead`, or all if that is not
/// positive. They count as read, and are valid until the next operation on the stream (rule ST-27). This
/// never waits.
///
/// - Parameter numBytesRead: Set to the number of bytes; -1 if the stream is not open or has failed; 0 with a
///   nil result: the stream has no bytes in memory, so read them.
public func CFReadStreamGetBuffer(
    _ stream: CFReadStream!, _ maxBytesToRead: CFIndex, _ numBytesRead: UnsafeMutablePointer<CFIndex>!
) -> UnsafePointer<UInt8>! {
    let found = stream.lend(atMost: maxBytesToRead > 0 ? maxBytesToRead : .max)
    let mayRead = [.opening, .open, .atEnd].contains(stream.streamStatus)
    numBytesRead?.pointee = found?.count ?? (mayRead ? 0 : -1)
    return found.flatMap { $0.baseAddress.map { UnsafePointer($0) } }
}

/// The reason why the stream has failed; nil if it has not.
public func CFReadStreamCopyError(_ stream: CFReadStream!) -> (any Error)? { stream.streamError }

/// Opens the stream; false if it was already open, or has failed at once.
@discardableResult
public func CFWriteStreamOpen(_ stream: CFWriteStream!) -> Bool {
    guard stream.streamStatus == .notOpen else { return false }
    stream.open()
    return stream.streamStatus != .error
}

public func CFWriteStreamClose(_ stream: CFWriteStream!) { stream.close() }

public func CFWriteStreamGetStatus(_ stream: CFWriteStream!) -> Stream.Status { stream.streamStatus }

public func CFWriteStreamCanAcceptBytes(_ stream: CFWriteStream!) -> Bool { stream.hasSpaceAvailable }

@discardableResult
public func CFWriteStreamWrite(
    _ stream: CFWriteStream!, _ buffer: UnsafePointer<UInt8>!, _ bufferLength: CFIndex
) -> CFIndex {
    stream.write(buffer, maxLength: bufferLength)
}

/// The reason why the stream has failed; nil if it has not.
public func CFWriteStreamCopyError(_ stream: CFWriteStream!) -> (any Error)? { stream.streamError }

// MARK: - Properties

public func CFReadStreamCopyProperty(
    _ stream: CFReadStream!, _ propertyName: CFStreamPropertyKey!
) -> CFTypeRef? {
    stream.property(forKey: propertyName)
}

/// Takes the name of the property, for example `kCFStreamPropertySocketRemoteHostName`.
public func CFReadStreamCopyProperty(_ stream: CFReadStream!, _ propertyName: CFString!) -> CFTypeRef? {
    stream.property(forKey: CFStreamPropertyKey(propertyName))
}

@discardableResult
public func CFReadStreamSetProperty(
    _ stream: CFReadStream!, _ propertyName: CFStreamPropertyKey!, _ propertyValue: CFTypeRef!
) -> Bool {
    stream.setProperty(propertyValue, forKey: propertyName)
}

/// Takes the name of the property, for example `kCFStreamPropertySSLSettings`.
@discardableResult
public func CFReadStreamSetProperty(
    _ stream: CFReadStream!, _ propertyName: CFString!, _ propertyValue: CFTypeRef!
) -> Bool {
    stream.setProperty(propertyValue, forKey: CFStreamPropertyKey(propertyName))
}

public func CFWriteStreamCopyProperty(
    _ stream: CFWriteStream!, _ propertyName: CFStreamPropertyKey!
) -> CFTypeRef? {
    stream.property(forKey: propertyName)
}

/// Takes the name of the property, for example `kCFStreamPropertySocketRemoteHostName`.
public func CFWriteStreamCopyProperty(_ stream: CFWriteStream!, _ propertyName: CFString!) -> CFTypeRef? {
    stream.property(forKey: CFStreamPropertyKey(propertyName))
}

@discardableResult
public func CFWriteStreamSetProperty(
    _ stream: CFWriteStream!, _ propertyName: CFStreamPropertyKey!, _ propertyValue: CFTypeRef!
) -> Bool {
    stream.setProperty(propertyValue, forKey: propertyName)
}

/// Takes the name of the property, for example `kCFStreamPropertySSLSettings`.
@discardableResult
public func CFWriteStreamSetProperty(
    _ stream: CFWriteStream!, _ propertyName: CFString!, _ propertyValue: CFTypeRef!
) -> Bool {
    stream.setProperty(propertyValue, forKey: CFStreamPropertyKey(propertyName))
}

/// See `Stream.PropertyKey.appendToFileKey`.
public var kCFStreamPropertyAppendToFile: CFString { Stream.PropertyKey.appendToFileKey.rawValue as NSString }
/// See `Stream.PropertyKey.fileCurrentOffsetKey`.
public var kCFStreamPropertyFileCurrentOffset: CFString {
    Stream.PropertyKey.fileCurrentOffsetKey.rawValue as NSString
}
/// See `Stream.PropertyKey.dataWrittenToMemoryStreamKey`.
public var kCFStreamPropertyDataWritten: CFString {
    Stream.PropertyKey.dataWrittenToMemoryStreamKey.rawValue as NSString
}
/// See `Stream.PropertyKey.socketNativeHandleKey`.
public var kCFStreamPropertySocketNativeHandle: CFString {
    Stream.PropertyKey.socketNativeHandleKey.rawValue as NSString
}
/// See `Stream.PropertyKey.socketRemoteHostNameKey`.
public var kCFStreamPropertySocketRemoteHostName: CFString {
    Stream.PropertyKey.socketRemoteHostNameKey.rawValue as NSString
}
/// See `Stream.PropertyKey.socketRemotePortNumberKey`.
public var kCFStreamPropertySocketRemotePortNumber: CFString {
    Stream.PropertyKey.socketRemotePortNumberKey.rawValue as NSString
}
/// See `Stream.PropertyKey.shouldCloseNativeSocketKey`.
public var kCFStreamPropertyShouldCloseNativeSocket: CFString {
    Stream.PropertyKey.shouldCloseNativeSocketKey.rawValue as NSString
}

/// The constants that Swift imports as members of the key on Apple's systems.
extension CFStreamPropertyKey {
    /// `kCFStreamPropertyAppendToFile`.
    public static let appendToFile = CFStreamPropertyKey.appendToFileKey
    /// `kCFStreamPropertyFileCurrentOffset`.
    public static let fileCurrentOffset = CFStreamPropertyKey.fileCurrentOffsetKey
    /// `kCFStreamPropertyDataWritten`.
    public static let dataWritten = CFStreamPropertyKey.dataWrittenToMemoryStreamKey
    /// `kCFStreamPropertySocketNativeHandle`.
    public static let socketNativeHandle = CFStreamPropertyKey.socketNativeHandleKey
    /// `kCFStreamPropertySocketRemoteHostName`.
    public static let socketRemoteHostName = CFStreamPropertyKey.socketRemoteHostNameKey
    /// `kCFStreamPropertySocketRemotePortNumber`.
    public static let socketRemotePortNumber = CFStreamPropertyKey.socketRemotePortNumberKey
}

// The dictionary of a SOCKS proxy (rule ST-45), and its keys.

/// See `Stream.PropertyKey.socksProxyConfigurationKey`.
public var kCFStreamPropertySOCKSProxy: CFString {
    Stream.PropertyKey.socksProxyConfigurationKey.rawValue as NSString
}
/// A String.
public var kCFStreamPropertySOCKSProxyHost: CFString {
    StreamSOCKSProxyConfiguration.hostKey.rawValue as NSString
}
/// A number.
public var kCFStreamPropertySOCKSProxyPort: CFString {
    StreamSOCKSProxyConfiguration.portKey.rawValue as NSString
}
/// One of the two versions below; 5 by default.
public var kCFStreamPropertySOCKSVersion: CFString {
    StreamSOCKSProxyConfiguration.versionKey.rawValue as NSString
}
/// A String; no user by default.
public var kCFStreamPropertySOCKSUser: CFString { StreamSOCKSProxyConfiguration.userKey.rawValue as NSString }
/// A String.
public var kCFStreamPropertySOCKSPassword: CFString {
    StreamSOCKSProxyConfiguration.passwordKey.rawValue as NSString
}
public var kCFStreamSocketSOCKSVersion4: CFString { StreamSOCKSProxyVersion.version4.rawValue as NSString }
public var kCFStreamSocketSOCKSVersion5: CFString { StreamSOCKSProxyVersion.version5.rawValue as NSString }

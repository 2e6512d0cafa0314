// Core Foundation's functions that make pairs of streams: thin, no logic. Each stream is handed over
// retained, as there: take it by `takeRetainedValue()`.

/// `Stream.getBoundStreams(withBufferSize:inputStream:outputStream:)`.
public func CFStreamCreateBoundPair(
    _ allocator: CFAllocator?, _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?, _ transferBufferSize: CFIndex
) {
    var input: InputStream?
    var output: OutputStream?
    Stream.getBoundStreams(withBufferSize: transferBufferSize, inputStream: &input, outputStream: &output)
    readStream?.pointee = input.map { .passRetained($0) }
    writeStream?.pointee = output.map { .passRetained($0) }
}

/// `Stream.getStreamsToHost(withName:port:inputStream:outputStream:)`.
public func CFStreamCreatePairWithSocketToHost(
    _ allocator: CFAllocator?, _ host: String, _ port: UInt32,
    _ readStream: UnsafeMutablePointer<Unmanaged<CFReadStream>?>?,
    _ writeStream: UnsafeMutablePointer<Unmanaged<CFWriteStream>?>?
) {
    var input: InputStream?
    var output: OutputStream?
    Stream.getStreamsToHost(withName: host, port: Int(port), inputStream: &input, outputStream: &output)
    readStream?.pointee = input.map { .passRetained($0) }
    writeStream?.pointee = output.map { .passRetained($0) }
}

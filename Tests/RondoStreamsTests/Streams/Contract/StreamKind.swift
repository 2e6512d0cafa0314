import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// Every kind of stream there is; the contract suite runs over all of them.
enum StreamKind: String, CaseIterable, Sendable {
    case memory, file
    /// Memory of a fixed size, which is only written.
    case buffer
    /// The two ends of a bound pair.
    case bound
    /// TCP to a host.
    case socket
    /// TLS to a host.
    case secured
    case unix
    /// Over a connected socket that was handed in.
    case adopted
    /// From a listener.
    case accepted
    /// Over a `FileHandle` for a pipe, for a socket and for a file, which are only read.
    case pipeHandle, socketHandle, fileHandle

    private static let handles: [StreamKind] = [.pipeHandle, .socketHandle, .fileHandle]
    static let inputs = allCases.filter { $0 != .buffer }
    static let outputs = allCases.filter { !handles.contains($0) }
    /// Those that have bytes at hand, where they can be lent.
    static let lenders = inputs.filter { $0 != .file && !handles.contains($0) }
    /// Those that give two streams with a peer behind them.
    static let pairs = outputs.filter { ![.memory, .file, .buffer].contains($0) }
    /// Those whose peer is a socket without TLS.
    static let plain: [StreamKind] = [.socket, .unix, .adopted, .accepted]
    /// Those in which a connection can be reset.
    static let tcp: [StreamKind] = [.socket, .accepted]

    var opensAtOnce: Bool {
        switch self {
        case .memory, .buffer, .file, .bound, .pipeHandle, .socketHandle, .fileHandle: true
        case .socket, .secured, .unix, .adopted, .accepted: false
        }
    }
}

// MARK: - One that gives bytes, and one that takes them

extension StreamKind {
    /// A stream that will give `bytes`, not opened, and what it needs to live. On the thread of a loop.
    func makeInput(_ bytes: [UInt8]) throws -> (InputStream, keep: AnyObject?) {
        switch self {
        case .memory:
            return (InputStream(data: Data(bytes)), nil)
        case .buffer: fatalError("a buffer is only written")
        case .file:
            let path = temporaryPath()
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return (InputStream(fileAtPath: path)!, Deferred { unlink(path) })
        case .bound:
            let (input, output) = boundStreams(max(1, bytes.count))
            output.open()
            _ = output.writeAll(bytes)
            output.close()
            return (input, nil)
        case .socket:
            let server = try ContentServer(bytes)
            return (streamsToHost(server.port).0, server)
        case .secured:
            return try Self.securedInput(bytes)
        case .unix:
            let server = try UnixServer { PlainSocket.send(bytes, on: $0) }
            return (streamsToUnixSocket(server.path).0, server)
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            PlainSocket.serve(theirs) { PlainSocket.send(bytes, on: $0) }
            return (ownedStreamsOnSocket(ours).0, nil)
        case .accepted:
            return (try acceptedStreams { PlainSocket.send(bytes, on: $0) }.input, nil)
        case .pipeHandle: return (try Self.pipeInput(bytes), nil)
        case .socketHandle:
            let (ours, theirs) = try PlainSocket.pair()
            PlainSocket.serve(theirs) { PlainSocket.send(bytes, on: $0) }
            return (InputStream(FileHandle(fileDescriptor: ours, closeOnDealloc: true)), nil)
        case .fileHandle:
            let path = temporaryPath()
            defer { unlink(path) }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return (InputStream(try FileHandle(forReadingFrom: URL(fileURLWithPath: path))), nil)
        }
    }

    /// Over a pipe that has room for all of the bytes, which are in it.
    private static func pipeInput(_ bytes: [UInt8]) throws -> InputStream {
        let pipe = Pipe()
        let writer = pipe.fileHandleForWriting
        // F_SETPIPE_SZ
        guard fcntl(writer.fileDescriptor, 1031, Int32(max(65_536, bytes.count))) >= bytes.count
        else {
            throw PeerIsSilent()
        }
        writer.write(Data(bytes))
        try writer.close()
        return InputStream(pipe.fileHandleForReading)
    }

    private static func securedInput(_ bytes: [UInt8]) throws -> (InputStream, keep: AnyObject?) {
        let path = temporaryPath()
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let (server, port) = try PythonServer.start(.content, path)
        let input = securedStreams(port).0
        return (
            input,
            Deferred { [server] in
                unlink(path)
                server.terminate()
            }
        )
    }

    /// A stream with room for `count` bytes, and what gives the bytes that it was given, once it is closed.
    func makeOutput(_ count: Int) throws -> (OutputStream, written: () -> [UInt8]) {
        switch self {
        case .memory:
            let stream = OutputStream(toMemory: ())
            return (
                stream, { Array(stream.property(forKey: .dataWrittenToMemoryStreamKey) as? Data ?? Data()) }
            )
        case .buffer:
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, count))
            memory.initialize(repeating: 0, count: max(1, count))
            let owner = Deferred { memory.deallocate() }
            return (
                OutputStream(toBuffer: memory, capacity: count),
                { withExtendedLifetime(owner) { Array(UnsafeBufferPointer(start: memory, count: count)) } }
            )
        case .file:
            let path = temporaryPath()
            let owner = Deferred { unlink(path) }
            return (
                OutputStream(toFileAtPath: path, append: false)!,
                {
                    withExtendedLifetime(owner) {
                        Array((try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data())
                    }
                }
            )
        case .bound:
            let (input, output) = boundStreams(max(1, count))
            input.open()
            return (output, { input.allBytes().1 })
        case .socket:
            let server = try SinkServer()
            return (streamsToHost(server.port).1, { server.received() })
        case .secured:
            return try Self.securedOutput()
        case .unix:
            let sink = Sink()
            let server = try UnixServer { sink.take($0) }
            return (streamsToUnixSocket(server.path).1, { withExtendedLifetime(server) { sink.received() } })
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            let sink = Sink()
            PlainSocket.serve(theirs) { sink.take($0) }
            return (ownedStreamsOnSocket(ours).1, { sink.received() })
        case .accepted:
            let sink = Sink()
            return (try acceptedStreams { sink.take($0) }.output, { sink.received() })
        case .pipeHandle, .socketHandle, .fileHandle: fatalError("these are only read")
        }
    }

    private static func securedOutput() throws -> (OutputStream, written: () -> [UInt8]) {
        let path = temporaryPath()
        let (server, port) = try PythonServer.start(.save, path)
        let output = streamsToHost(port, host: "localhost").1
        _ = output.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey)
        return (
            output,
            {
                defer {
                    server.terminate()
                    unlink(path)
                }
                guard (try? server.line(after: "SAVED")) != nil else { return [] }
                return Array((try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data())
            }
        )
    }
}

// MARK: - Both, with a peer

extension StreamKind {
    /// Streams whose other end is an echo, which ends when they do; on the thread of a loop.
    func makeEcho() throws -> (InputStream, OutputStream, keep: AnyObject?) {
        switch self {
        case .memory, .buffer, .file, .pipeHandle, .socketHandle, .fileHandle:
            fatalError("these have no peer")
        case .bound:
            let (input, output) = boundStreams(1_000)
            return (input, output, nil)
        case .secured:
            let (server, port) = try PythonServer.start(.echo)
            let (input, output) = securedStreams(port)
            return (input, output, Deferred { [server] in server.terminate() })
        case .socket, .unix, .adopted, .accepted:
            return try makePlain { PlainSocket.echo($0) }
        }
    }

    /// Streams of a connection without TLS whose other end a script plays.
    func makePlain(
        _ serve: @escaping @Sendable (Int32) -> Void
    ) throws -> (InputStream, OutputStream, keep: AnyObject?) {
        switch self {
        case .memory, .buffer, .file, .bound, .secured, .pipeHandle, .socketHandle, .fileHandle:
            fatalError("no plain socket")
        case .socket:
            let listener = try TestListener()
            Thread.detachNewThread { [descriptor = listener.descriptor] in
                let peer = accept(descriptor, nil, nil)
                guard peer >= 0 else { return }
                _ = fcntl(peer, F_SETFD, FD_CLOEXEC)
                serve(peer)
                close(peer)
            }
            let (input, output) = streamsToHost(listener.port)
            return (input, output, Deferred { shutdown(listener.descriptor, Int32(SHUT_RDWR)) })
        case .unix:
            let server = try UnixServer(serve)
            let (input, output) = streamsToUnixSocket(server.path)
            return (input, output, server)
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            PlainSocket.serve(theirs, serve)
            let (input, output) = ownedStreamsOnSocket(ours)
            return (input, output, nil)
        case .accepted:
            let connection = try acceptedStreams(serve)
            return (connection.input, connection.output, nil)
        }
    }

    /// Streams whose peer takes everything and says nothing until they end.
    func silentPair() throws -> (InputStream, OutputStream, keep: AnyObject?) {
        switch self {
        case .memory, .buffer, .file, .pipeHandle, .socketHandle, .fileHandle:
            fatalError("these have no peer")
        case .bound:
            let (input, _) = boundStreams(10)
            let (reader, output) = boundStreams(10)
            reader.open()
            return (input, output, reader)
        case .socket:
            let server = try SinkServer()
            let (input, output) = streamsToHost(server.port)
            return (input, output, server)
        case .secured:
            let path = temporaryPath()
            let (server, port) = try PythonServer.start(.save, path)
            let (input, output) = securedStreams(port)
            return (
                input, output,
                Deferred { [server] in
                    server.terminate()
                    unlink(path)
                }
            )
        case .unix:
            let server = try UnixServer { _ = PlainSocket.receiveAll($0) }
            let (input, output) = streamsToUnixSocket(server.path)
            return (input, output, server)
        case .adopted:
            let (ours, theirs) = try PlainSocket.pair()
            PlainSocket.serve(theirs) { _ = PlainSocket.receiveAll($0) }
            let (input, output) = ownedStreamsOnSocket(ours)
            return (input, output, nil)
        case .accepted:
            let connection = try acceptedStreams { _ = PlainSocket.receiveAll($0) }
            return (connection.input, connection.output, nil)
        }
    }
}

// MARK: - Scheduled and opened

extension StreamKind {
    /// `StreamEnd.onStream(_:_:)` with an input.
    func onInput(
        _ count: Int,
        _ body: @escaping @Sendable (RunLoop, InputStream, StreamNotes) throws -> Findings
    ) throws -> Findings {
        try StreamEnd(kind: self, isInput: true).onStream(count) { loop, stream, notes in
            try body(loop, try #require(stream as? InputStream), notes)
        }
    }
}

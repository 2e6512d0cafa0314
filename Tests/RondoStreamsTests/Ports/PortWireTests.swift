import RondoCore
import Testing

@testable import RondoStreams

/// The bytes of messages between processes.
@Suite struct PortWireTests {
    static let signature: [UInt8] = [2, 1, 6, 16, 16, 2, 0x12, 0x67, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]

    static func message(_ components: [(UInt32, Data)] = [(1, Data("I cannot weave".utf8))]) throws -> Data {
        try WireMessage.bytes(
            msgid: 5, signature: signature, components: components.map { (type: $0.0, bytes: $0.1) },
            maximum: 1 << 20)
    }

    /// Returns the messages that a reader finds if it gets `bytes` in pieces of `size` bytes.
    static func read(_ bytes: Data, inPiecesOf size: Int, maximum: Int = 1_000) -> Result<
        [WireMessage], WireError
    > {
        var reader = WireReader()
        var found: [WireMessage] = []
        do throws(WireError) {
            var rest = bytes[...]
            while !rest.isEmpty {
                Data(rest.prefix(size)).withUnsafeBytes { reader.receive($0) }
                rest = rest.dropFirst(size)
                while let message = try reader.next(maximum: maximum) { found.append(message) }
            }
            return .success(found)
        } catch {
            return .failure(error)
        }
    }

    @Test func `PM-12 a message has the bytes that Foundation's SocketPort writes`() throws {
        let bytes = try Self.message()
        let expected: [UInt8] =
            [0xD0, 0xCF, 0x50, 0xC0, 0, 0, 0, 54, 0, 0, 0, 5] + Self.signature + [0, 0, 0, 1, 0, 0, 0, 14]
            + Array("I cannot weave".utf8)
        #expect([UInt8](bytes) == expected)
    }

    @Test(arguments: [
        SocketAddress.ipv4(0x7f00_0001, port: 4711),
        .ipv6(high: 0xfe80 << 48, low: 1, port: 80, scope: 3),
        .unix(path: "/tmp/a socket"), .unix(path: "\0abstract"),
    ])
    func `PM-12 a signature is read as it was written`(_ address: SocketAddress) throws {
        let signature = PortSignature(
            family: address.family, type: 1, protocolNumber: 6, address: try #require(address.sockaddrData))
        let bytes = try #require(signature.wireBytes)
        let read = bytes.withUnsafeBytes { PortSignature(wire: $0) }
        #expect(read == signature)
        #expect(read?.socketAddress == address)
        if case .ipv6 = address { #expect(Array(bytes[..<6]) == [10, 1, 6, 28, 28, 30]) }
        #expect(bytes.dropLast().withUnsafeBytes { PortSignature(wire: $0) } == nil)
    }

    @Test(arguments: [1, 2, 3, 7, 53, 54, 55, 1_000])
    func `PM-12 messages are read however they are cut`(_ size: Int) throws {
        let one = try Self.message()
        let port = try Self.message([(2, Data(Self.signature)), (9, Data([1, 2])), (1, Data())])
        let messages = try Self.read(one + port + one, inPiecesOf: size).get()
        try #require(messages.count == 3)
        #expect(messages[0].components == [.data(Data("I cannot weave".utf8))])
        #expect(messages[0].msgid == 5)
        #expect(messages[0].sender?.socketAddress == .loopback(port: 0x1267))
        // What has an unknown type is left out.
        let sender = try #require(messages[1].sender)
        #expect(messages[1].components == [.port(sender), .data(Data())])
    }

    @Test(arguments: [1, 5, 1_000])
    func `PM-13 bytes that are not a message are a permanent error`(_ size: Int) throws {
        var wrongMagic = try Self.message()
        wrongMagic[0] = 0
        #expect(Self.read(wrongMagic, inPiecesOf: size).failure == .wrongMagic(0x00CF_50C0))
        // Found as soon as the number is there.
        #expect(Self.read(Data("GET ".utf8), inPiecesOf: size).failure == .wrongMagic(0x4745_5420))
        for length: UInt32 in [0, 8, 15, 1_001, .max] {
            var wrongLength = try Self.message()
            wrongLength.replaceSubrange(4..<8, with: length.bytes)
            #expect(Self.read(wrongLength, inPiecesOf: size).failure == .wrongLength(length))
        }
        // The signature, and a component, that are longer than the message.
        var longSignature = try Self.message([])
        longSignature[15] = 17
        #expect(Self.read(longSignature, inPiecesOf: size).failure == .doesNotFit)
        for length: UInt32 in [15, 255, .max] {
            var longComponent = try Self.message()
            longComponent.replaceSubrange(36..<40, with: length.bytes)
            #expect(Self.read(longComponent, inPiecesOf: size).failure == .doesNotFit)
        }
        var shortPort = try Self.message([(2, Data(Self.signature))])
        shortPort[43] = 15
        #expect(Self.read(shortPort, inPiecesOf: size).failure == .doesNotFit)
        // A rest of a component's head.
        let head = try Self.message([])
        var cut = head + Data([0, 0, 0, 1])
        cut.replaceSubrange(4..<8, with: UInt32(cut.count).bytes)
        #expect(Self.read(cut, inPiecesOf: size).failure == .doesNotFit)
    }

    @Test func `PM-13 more components than the greatest number are an error`() throws {
        let one = (UInt32(1), Data())
        let most = try Self.message(Array(repeating: one, count: SocketPort.maximumComponents))
        #expect(try Self.read(most, inPiecesOf: 1_000, maximum: 1 << 20).get().count == 1)
        let more = try Self.message(Array(repeating: one, count: SocketPort.maximumComponents + 1))
        #expect(Self.read(more, inPiecesOf: 1_000, maximum: 1 << 20).failure == .tooManyComponents)
        let content = PortContent(
            msgid: 0,
            components: Array(repeating: .data(Data()), count: SocketPort.maximumComponents + 1), sender: nil)
        let target = PortSignature.tcp(.loopback(port: 1))
        #expect(throws: PortWriteError.tooManyComponents) {
            try WireMessage.bytes(of: content, to: target, maximum: 1 << 20)
        }
    }

    @Test func `PM-13 the memory of a large message is given back, whatever has come behind it`() throws {
        let large = try WireMessage.bytes(
            msgid: 5, signature: Self.signature, components: [(type: 1, bytes: Data(count: 1 << 20))],
            maximum: 2 << 20)
        var reader = WireReader()
        for _ in 0..<2 {
            // The first bytes of the next message, which does not come for now.
            let next = large.prefix(5)
            large.dropFirst(reader.count).withUnsafeBytes { reader.receive($0) }
            next.withUnsafeBytes { reader.receive($0) }
            #expect(try reader.next(maximum: 2 << 20)?.components == [.data(Data(count: 1 << 20))])
            #expect(try reader.next(maximum: 2 << 20) == nil)
            #expect(reader.count == 5)
            #expect(reader.memory < 1 << 17, "\(reader.memory)")
        }
    }

    @Test func `PM-13 any bytes are a message or an error, and never a trap`() throws {
        var numbers = SystemRandomNumberGenerator()
        let good = try Self.message([(1, Data("x".utf8)), (2, Data(Self.signature))])
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &numbers) {
                bytes[Int.random(in: 0..<bytes.count, using: &numbers)] = .random(
                    in: 0...255, using: &numbers)
            }
            let whole = Self.read(bytes, inPiecesOf: 1_000)
            let pieces = Self.read(bytes, inPiecesOf: Int.random(in: 1...20, using: &numbers))
            #expect(whole.failure == pieces.failure)
            #expect((try? whole.get()) == (try? pieces.get()))
        }
    }
}

extension Result {
    fileprivate var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}

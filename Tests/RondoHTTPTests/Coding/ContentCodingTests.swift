import Foundation
import RondoHTTP
import Testing

@Suite struct ContentCodingTests {
    // MARK: Encoded content

    private static let text = String(
        repeating: "Rondo, a piece whose theme keeps coming back. ", count: 20)

    private static func bytes(_ base64: String) -> Data {
        Data(base64Encoded: base64, options: .ignoreUnknownCharacters) ?? Data()
    }

    private static let zstd = bytes(
        "KLUv/QRonQEA4kIKEMDrgFlmEXRzomT7X3q75gkNB2+0JIOOXco+NXKyej1bjTaqV3CSLgIBAD4bK1UGNhmAhw==")

    /// `text`, by the encoders of the libraries.
    private static let encoded: [(codings: [ContentCoding], bytes: Data)] = [
        ([.gzip], Deflater.encode(Data(text.utf8), .gzip)),
        ([.deflate], Deflater.encode(Data(text.utf8), .zlib)),
        ([.deflate], Deflater.encode(Data(text.utf8), .none)),
        ([.brotli], bytes("G5cDAARhcqSftwwCa4sLgg04cC/dbJlE7u3y1l23c6HRtAqBwcjj7b3Dk0wF")),
        ([.zstd], zstd),
        (
            [.gzip, .deflate, .gzip],
            Deflater.encode(
                Deflater.encode(Deflater.encode(Data(text.utf8), .gzip), .zlib), .gzip)
        ),
    ]

    private func decode(
        _ pieces: [Data], _ codings: [ContentCoding], limits: ContentLimits = ContentLimits()
    ) throws -> Data {
        let decoder = try ContentDecoder(codings, limits: limits)
        var decoded = Data()
        var rest = pieces[...]
        while true {
            switch try decoder.next() {
            case .data(let data):
                #expect(!data.isEmpty && data.count <= ContentDecoder.pieceSize)
                decoded += data
            case .needMoreData:
                if let next = rest.popFirst() { decoder.receive(next) } else { decoder.receiveEnd() }
            case .end:
                return decoded
            }
        }
    }

    private func decodeText(_ pieces: [Data], _ codings: [ContentCoding]) throws -> String {
        String(decoding: try decode(pieces, codings), as: UTF8.self)
    }

    // MARK: Names

    @Test(arguments: [
        ("gzip", [ContentCoding.gzip]), ("x-gzip", [.gzip]), ("GZip", [.gzip]), ("deflate", [.deflate]),
        ("br", [.brotli]), ("zstd", [.zstd]),
        ("identity", []), ("", []), (", ,", []),
        ("gzip, identity , deflate", [.gzip, .deflate]), ("compress", nil), ("gzip, aes128gcm", nil),
    ])
    func `RFC 9110 8.4 the codings of Content-Encoding are read, or refused if unknown`(
        _ value: String, _ expected: [ContentCoding]?
    ) {
        #expect(ContentCoding.codings(in: HeaderFields([("Content-Encoding", value)])) == expected)
    }

    @Test func `RFC 9110 5.3 codings are read from several fields, and no field means none`() {
        let fields = HeaderFields([("content-encoding", "gzip"), ("Content-Encoding", "deflate")])
        #expect(ContentCoding.codings(in: fields) == [.gzip, .deflate])
        #expect(ContentCoding.codings(in: HeaderFields()) == [])
        #expect(ContentCoding.acceptEncoding == "gzip, deflate, br, zstd")
    }

    // MARK: Content

    @Test(arguments: encoded)
    func `content is decoded, whole and byte by byte`(_ codings: [ContentCoding], _ bytes: Data) throws {
        #expect(try decodeText([bytes], codings) == Self.text)
        #expect(try decodeText(bytes.map { Data([$0]) }, codings) == Self.text)
        for cut in 1..<bytes.count {
            #expect(try decodeText([bytes.prefix(cut), bytes.dropFirst(cut)], codings) == Self.text)
        }
    }

    @Test(arguments: encoded)
    func `bytes after the end of the content are dropped`(_ codings: [ContentCoding], _ bytes: Data) throws {
        for garbage in [Data([0]), Data("\r\n".utf8), Data(repeating: 0x1F, count: 100_000)] {
            #expect(try decodeText([bytes + garbage], codings) == Self.text)
            #expect(try decodeText((bytes + garbage.prefix(9)).map { Data([$0]) }, codings) == Self.text)
        }
    }

    @Test(arguments: encoded)
    func `content that ends too early is an error, after what there was`(
        _ codings: [ContentCoding], _ bytes: Data
    ) throws {
        // Without the checks at the end the content is there, and servers do forget them.
        let checks = codings == [.gzip] ? 8 : codings == [.deflate] ? 4 : codings == [.zstd] ? 0 : 1
        for count in 1..<(bytes.count - checks - 1) where codings.count == 1 {
            #expect(throws: ContentDecodingError.truncated(codings[0]), "\(count) of \(bytes.count)") {
                try decode([bytes.prefix(count)], codings)
            }
        }
        let decoder = try ContentDecoder(codings)
        decoder.receive(bytes.prefix(bytes.count - 30))
        decoder.receiveEnd()
        #expect(throws: ContentDecodingError.self) { while try decoder.next() != .end {} }
        #expect(throws: ContentDecodingError.self, "an error stays") { try decoder.next() }
    }

    @Test func `gzip and zlib without their checks at the end are whole`() throws {
        let gzip = Deflater.encode(Data(Self.text.utf8), .gzip)
        for missing in 1...8 { #expect(try decodeText([gzip.dropLast(missing)], [.gzip]) == Self.text) }
        let zlib = Deflater.encode(Data(Self.text.utf8), .zlib)
        for missing in 1...4 { #expect(try decodeText([zlib.dropLast(missing)], [.deflate]) == Self.text) }
    }

    @Test(
        arguments: [[ContentCoding.gzip], [.deflate], [.brotli], [.zstd], [.gzip, .brotli, .zstd]])
    func `an empty body is empty content`(_ codings: [ContentCoding]) throws {
        #expect(try decode([], codings).isEmpty)
        #expect(try decode([Data()], codings).isEmpty)
    }

    @Test func `RFC 1952 2.2 gzip in several members`() throws {
        let members =
            Deflater.encode(Data("a".utf8), .gzip) + Deflater.encode(Data(), .gzip)
            + Deflater.encode(Data("b".utf8), .gzip)
        #expect(try decodeText([members], [.gzip]) == "ab")
        #expect(try decodeText(members.map { Data([$0]) }, [.gzip]) == "ab")
    }

    @Test func `RFC 8878 3.1 zstd in several frames, some to be skipped`() throws {
        let frame = Self.zstd
        let skipped = Data([0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3])
        let frames = skipped + frame + skipped + frame
        #expect(try decodeText([frames], [.zstd]) == Self.text + Self.text)
        #expect(try decodeText(frames.map { Data([$0]) }, [.zstd]) == Self.text + Self.text)
    }

    @Test(arguments: encoded)
    func `damaged content is an error or other content, never a trap`(
        _ codings: [ContentCoding], _ bytes: Data
    ) throws {
        var refused = 0
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x55
            do { _ = try decode([damaged], codings) } catch is ContentDecodingError { refused += 1 }
        }
        #expect(refused > 0)
    }

    @Test(arguments: ContentCoding.available)
    func `content that was never encoded is an error`(_ coding: ContentCoding) throws {
        #expect(throws: ContentDecodingError.self) {
            try decode([Data("<!DOCTYPE html><p>not encoded".utf8)], [coding])
        }
    }

    @Test func `a large body is decoded exactly`() throws {
        var random = SystemRandomNumberGenerator()
        let data = Data((0..<500_000).map { _ in UInt8.random(in: 0...15, using: &random) })
        let bytes = Deflater.encode(Deflater.encode(data, .gzip), .zlib)
        let pieces = stride(from: 0, to: bytes.count, by: 7_919).map {
            bytes[$0..<min(bytes.count, $0 + 7_919)]
        }
        #expect(try decode(pieces, [.gzip, .deflate]) == data)
    }

    // MARK: Limits

    private static let bombs: [(codings: [ContentCoding], bytes: Data)] = [
        ([.gzip], Deflater.encode(Data(count: 1 << 28), .gzip)),
        ([.brotli], brotliBomb),
        ([.zstd], zstdBomb),
    ]

    @Test(arguments: bombs)
    func `a bomb is refused by its ratio, and passes where that is allowed`(
        _ codings: [ContentCoding], _ bytes: Data
    ) throws {
        let decoder = try ContentDecoder(codings)
        decoder.receive(bytes)
        decoder.receiveEnd()
        var count = 0
        #expect(throws: ContentDecodingError.exceededRatio(200)) {
            while case .data(let data) = try decoder.next() { count += data.count }
        }
        #expect(count <= 1 << 26)
        var limits = ContentLimits()
        limits.maximumRatio = .max
        let generous = try ContentDecoder(codings, limits: limits)
        generous.receive(bytes)
        generous.receiveEnd()
        count = 0
        while case .data(let data) = try generous.next() { count += data.count }
        #expect(count == 1 << 28)
    }

    @Test func `a bomb inside a coding that ends before it is refused`() throws {
        // What grows is dropped behind the end of the inner coding, and costs time all the same.
        let inner = Deflater.encode(Data(), .zlib) + Data(count: 1 << 28)
        let bytes = Deflater.encode(inner, .gzip)
        #expect(throws: ContentDecodingError.exceededRatio(200)) { try decode([bytes], [.deflate, .gzip]) }
    }

    @Test func `the size and the number of codings have limits`() throws {
        var limits = ContentLimits()
        limits.maximumSize = 919
        #expect(throws: ContentDecodingError.exceededSize(919)) {
            try decode([Self.encoded[0].bytes], [.gzip], limits: limits)
        }
        limits.maximumSize = 920
        #expect(try decode([Self.encoded[0].bytes], [.gzip], limits: limits).count == 920)
        #expect(throws: ContentDecodingError.tooManyCodings(5)) {
            _ = try ContentDecoder(Array(repeating: .gzip, count: 6))
        }
    }

    /// libzstd would decode it, and with a window of 128 MiB too.
    @Test func `RFC 8878 3.1.1 a frame of Zstandard 0.7, from before the standard, is refused`() throws {
        // A header without a size, a block of two bytes as they are, and the end.
        let frame = Data([0x27, 0xB5, 0x2F, 0xFD, 0, 0x88, 0x40, 0, 2, 0x68, 0x69, 0xC0, 0, 0])
        let refusal = ContentDecodingError.corrupt(.zstd, detail: "it does not begin with a frame")
        #expect(throws: refusal) { try decode([frame], [.zstd]) }
        #expect(throws: refusal) { try decode(frame.map { Data([$0]) }, [.zstd]) }
        // After a frame it is what follows the content.
        #expect(try decodeText([Self.zstd + frame], [.zstd]) == Self.text)
    }

    /// Whole, byte by byte, and in two pieces wherever they part.
    private func cuts(of bytes: Data) -> [[Data]] {
        [[bytes], bytes.map { Data([$0]) }]
            + (1..<bytes.count).map { [bytes.prefix($0), bytes.dropFirst($0)] }
    }

    @Test func `RFC 9659 a window above 8 MiB is refused, however the frame comes`() throws {
        // Window descriptor 0x70: 2²⁴ bytes. Without a size, and with one: 0, which libzstd decodes in one step.
        for frame in [
            [0x28, 0xB5, 0x2F, 0xFD, 0, 0x70, 1, 0, 0] as [UInt8],
            [0x28, 0xB5, 0x2F, 0xFD, 0x80, 0x70, 0, 0, 0, 0, 1, 0, 0],
        ] {
            for pieces in cuts(of: Data(frame)) {
                #expect(throws: ContentDecodingError.self) { try decode(pieces, [.zstd]) }
            }
        }
        for pieces in cuts(of: Data([0x28, 0xB5, 0x2F, 0xFD, 0, 0x68, 1, 0, 0])) {
            #expect(try decode(pieces, [.zstd]).isEmpty)
        }
    }

    @Test func `RFC 8878 3.1.1 a frame is as long as its header says, however it comes`() throws {
        // A single segment of `size` bytes; a block of two bytes as they are, and an empty one as the last.
        func frame(_ size: UInt8) -> Data {
            Data([0x28, 0xB5, 0x2F, 0xFD, 0x20, size, 0x10, 0, 0, 0x68, 0x69, 1, 0, 0])
        }
        for pieces in cuts(of: frame(2)) { #expect(try decodeText(pieces, [.zstd]) == "hi") }
        for size in [0, 1, 3, 255] as [UInt8] {
            for pieces in cuts(of: frame(size)) {
                #expect(throws: ContentDecodingError.self, "\(size) in \(pieces.count)") {
                    try decode(pieces, [.zstd])
                }
            }
        }
    }

    @Test func `RFC 8878 3.1.2 a frame to be skipped may be empty, and look like the header of another`()
        throws
    {
        let empty = Data([0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0])
        for pieces in cuts(of: empty + empty + Self.zstd) {
            #expect(try decodeText(pieces, [.zstd]) == Self.text)
        }
        // After the magic number: no single segment, a size of two bytes, a window of 3 KiB. Those bytes begin a frame to
        // be skipped, if one asks in the middle.
        let disguised = Data([0x28, 0xB5, 0x2F, 0xFD, 0x50, 0x2A, 0x4D, 0x18, 0x81, 0, 0, 0x21])
        let outcomes = Set(
            cuts(of: disguised).map { pieces in (try? decodeText(pieces, [.zstd])) ?? "refused" })
        #expect(outcomes.count == 1)
    }

    /// 2,048 blocks that say "131,072 zeros".
    private static let zstdBomb: Data = {
        var bytes: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58]
        for block in 0..<2048 {
            let header = 131_072 << 3 | 1 << 1 | (block == 2047 ? 1 : 0)
            bytes += [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16), 0]
        }
        return Data(bytes)
    }()

    /// 2²⁸ zeros.
    private static let brotliBomb = bytes(
        """
        y///PwAkAOKxQHLv//j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+\
        j///fwBIAMRhAeje//H//w8ACYA4LADd+z/+//8BIAEQhwWge//H//8/ACQA4rAAdO//+P//B4AEQBwWgO79\
        H////wCQAIjDAtC9/+P//x8AEgBxWAC693/8//8DQAIgDgtA9/6P//9/AEgAxGEB6N7/8f//DwAJgDgsAN37\
        P/7//wEgARCHBaB7/8f//z8AJADisAB07//4//8HgARAHBaA7v0f////AJAAiMMC0L3/4///HwASAHFYALr3\
        f/z//wNAAiAOC0D3/o///38ASADEYQHo3v/x//8PAAmAOCwA3fs//v//ASABEIcFoHv/x///PwAkAOKwAHTv\
        //j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+j///fwBIAMRhAeje\
        //H//w8ACYA4LADd+7/8//8DIAEQhwWge/8H
        """)
}

// Messages between socket ports, as bytes. A message consists, in network byte order, of a magic number, the
// total length, the message's number, the signature of the port for the answer, and the components, each
// preceded by its type and its length: the format of swift-corelibs-foundation's Port.swift (rule PM-12).
//
// That Port.swift ignores a message whose components have fewer than 20 bytes with their heads: a single
// component of fewer than 12, for example.

package import RondoCore

/// A received message, with its lengths checked.
package struct WireMessage: Equatable, Sendable {
    package enum Component: Equatable, Sendable {
        case data(Data)
        case port(PortSignature)
    }

    package let msgid: UInt32
    /// The port for the answer; nil if the bytes are no valid signature.
    package let sender: PortSignature?
    package let components: [Component]
}

/// The reason why a peer's bytes are no message.
package enum WireError: Error, Equatable {
    case wrongMagic(UInt32)
    case wrongLength(UInt32)
    /// A component, or the signature, is longer than the message.
    case doesNotFit
    case tooManyComponents
}

extension WireMessage {
    static let magic: UInt32 = 0xD0CF_50C0
    /// The bytes before the signature.
    static let headSize = 12
    /// The length of the shortest message: a signature without an address, and no component.
    static let leastSize = headSize + PortSignature.headSize
    /// The bytes before a component: its type and its length.
    static let componentHeadSize = 8
    /// The most components of a message. Each becomes an object, which takes far more memory than its bytes.
    static let maximumComponents = 4_096
    static let dataType: UInt32 = 1
    static let portType: UInt32 = 2

    /// - Parameter bytes: A whole message.
    init(_ bytes: UnsafeRawBufferPointer) throws(WireError) {
        let magic = bytes.number(at: 0)
        guard magic == Self.magic else { throw .wrongMagic(magic ?? 0) }
        guard let length = bytes.number(at: 4), let msgid = bytes.number(at: 8) else { throw .doesNotFit }
        guard bytes.count >= Self.leastSize, length == bytes.count else { throw .wrongLength(length) }
        var index = Self.leastSize + Int(bytes[Self.leastSize - 1])
        guard index <= bytes.count else { throw .doesNotFit }
        sender = PortSignature(wire: UnsafeRawBufferPointer(rebasing: bytes[Self.headSize..<index]))
        self.msgid = msgid
        var components: [Component] = []
        var count = 0
        while index < bytes.count {
            count += 1
            guard count <= Self.maximumComponents else { throw .tooManyComponents }
            guard let type = bytes.number(at: index), let size = bytes.number(at: index + 4),
                Int(size) <= bytes.count - index - Self.componentHeadSize
            else { throw .doesNotFit }
            let start = index + Self.componentHeadSize
            index = start + Int(size)
            let part = UnsafeRawBufferPointer(rebasing: bytes[start..<index])
            switch type {
            case Self.dataType: components.append(.data(Data(part)))
            case Self.portType:
                guard let port = PortSignature(wire: part) else { throw .doesNotFit }
                components.append(.port(port))
            // Unknown types are skipped, as in Foundation.
            default: break
            }
        }
        self.components = components
    }
}

extension UnsafeRawBufferPointer {
    /// The four-byte number in network byte order; nil if there are fewer bytes.
    func number(at offset: Int) -> UInt32? {
        guard offset + 4 <= count else { return nil }
        return UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}

// Messages between socket ports, as bytes. A message is, in the order of the network: a magic number, the length of the
// whole, the message's number, the signature of the port for the answer, and the components, each with its type and its
// length before it: what swift-corelibs-foundation's Port.swift writes and reads (rule PM-12).
//
// Its receiver ignores a message whose components have fewer than 20 bytes with their heads: one alone of fewer than 12.

package import RondoCore

/// A message as it came, its lengths checked.
package struct WireMessage: Equatable, Sendable {
    package enum Component: Equatable, Sendable {
        case data(Data)
        case port(PortSignature)
    }

    package let msgid: UInt32
    /// The port for the answer; nil: the bytes are no signature.
    package let sender: PortSignature?
    package let components: [Component]
}

/// Why the bytes of a peer are no message.
package enum WireError: Error, Equatable {
    case wrongMagic(UInt32)
    case wrongLength(UInt32)
    /// A component, or the signature, is longer than the message.
    case doesNotFit
    case tooManyComponents
}

extension WireMessage {
    static let magic: UInt32 = 0xD0CF_50C0
    /// Bytes before the signature.
    static let headSize = 12
    /// The shortest message: its signature has no address, and there is no component.
    static let leastSize = headSize + PortSignature.headSize
    /// Bytes before a component: its type and its length.
    static let componentHeadSize = 8
    /// The most components of a message. Each becomes an object, which takes far more memory than its bytes.
    static let maximumComponents = 4_096
    static let dataType: UInt32 = 1
    static let portType: UInt32 = 2

    /// - Parameter bytes: All of a message.
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
            // Types that are not known are left out, as Foundation does.
            default: break
            }
        }
        self.components = components
    }
}

extension UnsafeRawBufferPointer {
    /// The number in four bytes, in the order of the network; nil: there are fewer.
    func number(at offset: Int) -> UInt32? {
        guard offset + 4 <= count else { return nil }
        return UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}

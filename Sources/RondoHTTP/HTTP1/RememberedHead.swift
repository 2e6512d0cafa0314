internal import Glibc

/// The head that was read last on a connection. A server that is asked for the same thing again says the same as long as its
/// clock shows the same second: then nothing has to be taken apart anew.
struct RememberedHead: Sendable {
    /// The status line as it came, with its line end; empty: nothing is remembered.
    private var line: [UInt8] = []
    /// Its fields hold the rest of the bytes.
    private var head = ResponseHead(status: 0)

    /// The head at the beginning of `input`, if it is this one, and how many bytes it has there.
    func find(in input: UnsafeRawBufferPointer) -> (head: ResponseHead, size: Int)? {
        let (lineSize, fieldsSize) = (line.count, head.fields.bytes.count)
        guard lineSize > 0, lineSize + fieldsSize <= input.count, let start = input.baseAddress else {
            return nil
        }
        // The fields first: it is their date that differs.
        let areSame = head.fields.bytes.withUnsafeBytes { Self.isEqual($0, start + lineSize) }
        guard areSame, line.withUnsafeBytes({ Self.isEqual($0, start) }) else { return nil }
        return (head, lineSize + fieldsSize)
    }

    /// Remembers a head.
    ///
    /// - Parameter bytes: All of it, with a status line of `lineSize` bytes.
    mutating func note(_ head: ResponseHead, of bytes: UnsafeRawBufferPointer, lineSize: Int) {
        // Without fields there is nothing that holds the empty line.
        guard bytes.count <= ResponseHead.maximumRemembered, !head.fields.isEmpty,
            let start = bytes.baseAddress
        else { return }
        let isSameLine = line.count == lineSize && line.withUnsafeBytes { Self.isEqual($0, start) }
        if !isSameLine { line = [UInt8](bytes[..<lineSize]) }
        self.head = head
    }

    /// - Parameter other: So many bytes are there.
    private static func isEqual(_ bytes: UnsafeRawBufferPointer, _ other: UnsafeRawPointer) -> Bool {
        bytes.baseAddress.map { memcmp($0, other, bytes.count) == 0 } ?? true
    }
}

extension ResponseHead {
    /// Bytes of a head that is remembered, in case the next one is the same. The response made of a larger one need
    /// not be remembered either.
    package static let maximumRemembered = 1024
}

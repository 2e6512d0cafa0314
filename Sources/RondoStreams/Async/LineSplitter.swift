package import RondoCore

/// Splits a text that arrives in pieces into lines (rule US-85).
package struct LineSplitter {
    package enum Found: Equatable {
        case line(String)
        /// No complete line has arrived.
        case nothing
        /// A line is longer than the limit.
        case tooLong
    }

    private let keepsEmpty: Bool
    private let maximumLength: Int
    private var bytes: [UInt8] = []
    /// The start of the next line.
    private var start = 0
    /// The position from which the search for the line's end continues.
    private var searched = 0
    /// True if the last line ended with a carriage return: a line feed right behind it belongs to that end.
    private var skipsLineFeed = false

    /// - Parameter keepsEmpty: If true, lines end at LF, CR and CR LF only, and empty lines are returned.
    package init(keepsEmpty: Bool, maximumLength: Int) {
        self.keepsEmpty = keepsEmpty
        self.maximumLength = maximumLength
    }

    package mutating func add(_ piece: Data) {
        forgetGiven()
        bytes.append(contentsOf: piece)
    }

    mutating func add(_ piece: [UInt8]) {
        forgetGiven()
        bytes.append(contentsOf: piece)
    }

    private mutating func forgetGiven() {
        // Consumed bytes are removed once they are half of the buffer, so that no byte is moved often.
        if start * 2 >= bytes.count {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
    }

    package mutating func next() -> Found {
        skipLineFeed()
        while let end = findEnd() {
            let line = start..<end.lowerBound
            skipsLineFeed = bytes[end.lowerBound] == UInt8(ascii: "\r")
            start = end.upperBound
            searched = start
            skipLineFeed()
            if line.count > maximumLength { return .tooLong }
            if keepsEmpty || !line.isEmpty { return .line(text(line)) }
        }
        return bytes.count - start > maximumLength ? .tooLong : .nothing
    }

    /// Returns the text behind the last line end; nil if there is none. No pieces may be added afterwards.
    package mutating func takeRest() -> String? {
        defer {
            bytes = []
            (start, searched) = (0, 0)
        }
        return start < bytes.count ? text(start..<bytes.count) : nil
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private mutating func skipLineFeed() {
        guard skipsLineFeed, start < bytes.count else { return }
        skipsLineFeed = false
        guard bytes[start] == UInt8(ascii: "\n") else { return }
        start += 1
        searched = start
    }

    /// The bytes that end the line; nil if they have not arrived, or not all of them.
    private mutating func findEnd() -> Range<Int>? {
        let (from, keepsEmpty) = (searched, keepsEmpty)
        let (found, searched) = bytes.withUnsafeBufferPointer { bytes -> (Range<Int>?, Int) in
            var place = from
            while place < bytes.count {
                let byte = bytes[place]
                // Most bytes cannot start a line end.
                if byte >= 0x0E, byte < 0xC2 || keepsEmpty {
                    place += 1
                    continue
                }
                switch Self.endLength(bytes, place, onlyFeedsAndReturns: keepsEmpty) {
                case nil: return (nil, place)
                case 0?: place += 1
                case let length?: return (place..<(place + length), place)
                }
            }
            return (nil, place)
        }
        self.searched = searched
        return found
    }

    /// The length of the line end that starts at `place`, 0 if none does; nil if the next byte decides.
    private static func endLength(
        _ bytes: UnsafeBufferPointer<UInt8>, _ place: Int, onlyFeedsAndReturns: Bool
    ) -> Int? {
        switch bytes[place] {
        case 0x0A, 0x0D: return 1
        case 0x0B, 0x0C: return onlyFeedsAndReturns ? 0 : 1
        // U+0085; below, U+2028 and U+2029.
        case 0xC2:
            guard place + 1 < bytes.count else { return nil }
            return bytes[place + 1] == 0x85 ? 2 : 0
        case 0xE2:
            guard place + 1 < bytes.count else { return nil }
            guard bytes[place + 1] == 0x80 else { return 0 }
            guard place + 2 < bytes.count else { return nil }
            return bytes[place + 2] == 0xA8 || bytes[place + 2] == 0xA9 ? 3 : 0
        default: return 0
        }
    }
}

import RondoHTTP
import Testing

@Suite struct UTF8ValidatorTests {
    /// Every character of two bytes, and for each length the borders of what its bytes may be, followed by something.
    @Test func `WS-12 the UTF-8 validator agrees with the standard library on every beginning`() {
        let borders: [UInt8] = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xFF]
        var samples: [[UInt8]] = []
        for first in UInt8.min ... .max {
            for second in UInt8.min ... .max { samples.append([first, second]) }
        }
        for first in UInt8(0xE0)...0xFF {
            for second in borders {
                for third in borders {
                    samples.append([first, second, third])
                    for fourth in borders { samples.append([first, second, third, fourth]) }
                }
            }
        }
        for sample in samples {
            for padding in [0, 1, 7, 8] {
                // Behind ASCII the words are cut elsewhere; before it the whole character is at hand.
                let ascii = [UInt8](repeating: 0x61, count: padding)
                for text in [ascii + sample, ascii + sample + ascii] {
                    let isValid = String(validating: text, as: UTF8.self) != nil
                    let accepted = text.withUnsafeBytes { UTF8Validator.isValid($0) }
                    if accepted != isValid { Issue.record("\(text): \(accepted)") }
                }
            }
        }
    }

    /// For text that is valid up to a byte and not with it, however it is cut.
    @Test(arguments: ["aé€🎵", "abcdefgh€abcdefgh", "🎵🎵🎵", "ééééééééé"])
    func `WS-12 the first bad byte is found wherever the text is cut`(_ text: String) {
        let good = Array(text.utf8)
        for bad in 0...good.count {
            for byte in [0xC0, 0xFF] as [UInt8] {
                let bytes = good[..<bad] + [byte]
                for cut in 0..<bytes.count {
                    var validator = UTF8Validator()
                    let first = bytes[..<cut].withUnsafeBytes { validator.accept($0) }
                    let almost = bytes[cut..<bad].withUnsafeBytes { validator.accept($0) }
                    let last = bytes[bad...].withUnsafeBytes { validator.accept($0) }
                    #expect(first && almost && !last)
                }
            }
        }
    }

    @Test func `WS-12 an unfinished character is none until it is whole`() {
        var validator = UTF8Validator()
        for (byte, isComplete) in zip(Array("€a".utf8), [false, false, true, true]) {
            #expect([byte].withUnsafeBytes { validator.accept($0) })
            #expect(validator.isComplete == isComplete)
        }
    }
}

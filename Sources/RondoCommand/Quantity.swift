import ArgumentParser
import Rondo

/// A number of bytes as people type it: `1500`, `500k`, `2M`, `1.5G`. The units are decimal.
struct Quantity: ExpressibleByArgument, Equatable {
    let bytes: Int

    init(bytes: Int) {
        self.bytes = bytes
    }

    init?(argument: String) {
        var digits = argument[...]
        var factor = 1.0
        if let unit = digits.last, let known = Self.factor(of: unit) {
            factor = known
            digits.removeLast()
        }
        guard let first = digits.first, first.isASCII, first.isNumber, let number = Double(digits) else {
            return nil
        }
        let value = number * factor
        guard value < Double(Int.max) else { return nil }
        bytes = Int(value)
    }

    private static func factor(of unit: Character) -> Double? {
        switch unit {
        case "k", "K": 1e3
        case "m", "M": 1e6
        case "g", "G": 1e9
        default: nil
        }
    }

    var defaultValueDescription: String { String(bytes) }
}

internal import RondoLibraries

/// A content coding that can be undone (RFC 9110 §8.4.1).
package enum ContentCoding: String, Sendable, CaseIterable {
    case gzip
    /// By its definition zlib's format; what some servers send is DEFLATE without it, which is read too.
    case deflate
    case brotli = "br"
    case zstd

    /// Those that can be undone on this machine: the libraries of Brotli and Zstandard are looked up when they are first
    /// asked for.
    package static let available: [ContentCoding] = allCases.filter { coding in
        switch coding {
        case .gzip, .deflate: true
        case .brotli: Brotli.library != nil
        case .zstd: Zstandard.library != nil
        }
    }

    /// The value of Accept-Encoding: `gzip, deflate, br, zstd`, as the browsers send it, without those that are not
    /// available.
    package static let acceptEncoding = available.map(\.rawValue).joined(separator: ", ")

    /// The codings that Content-Encoding names, in the order in which they were applied, `identity` left out;
    /// nil if one of them is unknown: such content is handed on as it is.
    package static func codings(in fields: HeaderFields) -> [ContentCoding]? {
        var codings: [ContentCoding] = []
        var areKnown = true
        fields.forEachElement(of: "Content-Encoding") { element in
            switch String(decoding: element, as: UTF8.self).lowercased() {
            case "", "identity": break
            case "gzip", "x-gzip": codings.append(.gzip)
            case "deflate", "x-deflate": codings.append(.deflate)
            case "br": codings.append(.brotli)
            case "zstd": codings.append(.zstd)
            default: areKnown = false
            }
        }
        return areKnown && codings.allSatisfy(available.contains) ? codings : nil
    }
}

/// How much may come out of encoded content before it is taken for an attack. Content is decoded as it comes
/// and nothing of it is kept, so the limits protect receivers that keep it.
package struct ContentLimits: Sendable, Equatable {
    /// Bytes that come out for each that goes in. As Apache's `DeflateInflateRatioLimit`; text is seldom
    /// above 20, DEFLATE cannot exceed 1,032, the others have no bound.
    package var maximumRatio: Int64 = 200

    /// The ratio is looked at from so many bytes of output on: small files may well be all zeros.
    package var ratioThreshold: Int64 = 64 * 1024 * 1024

    /// Bytes that come out in all.
    package var maximumSize = Int64.max

    /// Codings on top of each other. As curl (`MAX_ENCODE_STACK`).
    package var maximumCodings = 5

    package init() {}
}

/// Why content could not be decoded.
package enum ContentDecodingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It is not in that coding, or damaged. What the library says, where it says something.
    case corrupt(ContentCoding, detail: String)
    /// It ended in the middle.
    case truncated(ContentCoding)
    case exceededRatio(Int64)
    case exceededSize(Int64)
    case tooManyCodings(Int)
    /// The library could not allocate its memory.
    case outOfMemory(ContentCoding)
    /// The machine lacks the library. (Such content is handed on as it is, and no decoder made.)
    case missingLibrary(ContentCoding)

    package var description: String {
        switch self {
        case .corrupt(let coding, let detail):
            "The content is not in the coding \(coding.rawValue) that its Content-Encoding names"
                + (detail.isEmpty ? "." : ": \(detail).")
        case .truncated(let coding): "The content ends in the middle of its coding \(coding.rawValue)."
        case .exceededRatio(let limit):
            "The content grows to more than \(limit) times its size when it is decoded."
        case .exceededSize(let limit): "The decoded content is longer than \(limit) bytes."
        case .tooManyCodings(let limit): "The content is encoded more than \(limit) times over."
        case .outOfMemory(let coding): "There is no memory to decode the coding \(coding.rawValue)."
        case .missingLibrary(let coding): "There is no library for the coding \(coding.rawValue)."
        }
    }
}

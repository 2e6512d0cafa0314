internal import RondoLibraries

/// A content coding that can be decoded (RFC 9110 §8.4.1).
package enum ContentCoding: String, Sendable, CaseIterable {
    case gzip
    /// Defined as zlib's format; some servers send DEFLATE without it, which is accepted too.
    case deflate
    case brotli = "br"
    case zstd

    /// The codings that can be decoded on this machine. The libraries of Brotli and Zstandard are loaded on
    /// first use.
    package static let available: [ContentCoding] = allCases.filter { coding in
        switch coding {
        case .gzip, .deflate: true
        case .brotli: Brotli.library != nil
        case .zstd: Zstandard.library != nil
        }
    }

    /// The value of Accept-Encoding: `gzip, deflate, br, zstd`, like the browsers', without unavailable
    /// codings.
    package static let acceptEncoding = available.map(\.rawValue).joined(separator: ", ")

    /// The codings in Content-Encoding, in the order in which they were applied, without `identity`; nil if
    /// one of them is unknown or unavailable: such content is delivered without decoding.
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

/// Limits for the size of decoded content, beyond which it is treated as an attack. Content is decoded piece
/// by piece and not stored, so the limits protect receivers that store it.
package struct ContentLimits: Sendable, Equatable {
    /// Bytes of output for each byte of input. As Apache's `DeflateInflateRatioLimit`; text is seldom above
    /// 20, DEFLATE cannot exceed 1,032, the others have no bound.
    package var maximumRatio: Int64 = 200

    /// Bytes of output up to which the ratio is not checked: a small file may well be all zeros.
    package var ratioThreshold: Int64 = 64 * 1024 * 1024

    /// Bytes of output in all.
    package var maximumSize = Int64.max

    /// The number of codings applied one after the other. As curl (`MAX_ENCODE_STACK`).
    package var maximumCodings = 5

    package init() {}
}

/// The reason why content could not be decoded.
package enum ContentDecodingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The content is damaged or not in that coding. `detail` is the library's message, if there is one.
    case corrupt(ContentCoding, detail: String)
    /// The content ended too early.
    case truncated(ContentCoding)
    case exceededRatio(Int64)
    case exceededSize(Int64)
    case tooManyCodings(Int)
    /// The library could not allocate its memory.
    case outOfMemory(ContentCoding)
    /// The machine lacks the library. (Normally no decoder is made then, and the content is delivered without
    /// decoding.)
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

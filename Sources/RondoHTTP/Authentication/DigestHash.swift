internal import CRondoOpenSSL

package import struct Foundation.Data

/// A hash function of Digest authentication, by OpenSSL.
package enum DigestHash: Sendable, Equatable, CaseIterable {
    case md5
    case sha256
    /// SHA-512 with other initial values, cut to 256 bits (FIPS 180-4 §5.3.6). Not the first half of SHA-512,
    /// which the example in RFC 7616 §3.9.2 uses by mistake.
    case sha512T256

    /// OpenSSL's name of the function.
    private var name: String {
        switch self {
        case .md5: "MD5"
        case .sha256: "SHA2-256"
        case .sha512T256: "SHA2-512/256"
        }
    }

    /// False if the machine's policy forbids the function, as FIPS forbids MD5.
    package var isAvailable: Bool { hexadecimal(of: "") != nil }

    /// The hash of `text` in UTF-8, in lower-case hexadecimal digits; nil if the function is not available.
    package func hexadecimal(of text: String) -> String? { hexadecimal(of: Array(text.utf8)) }

    /// The hash of `bytes`, in the same form.
    func hexadecimal(of bytes: [UInt8]) -> String? {
        var running = RunningHash(self)
        running?.update(bytes.span.bytes)
        return running?.finish()
    }

    /// The hash of `data`, in the same form.
    package func hexadecimal(of data: Data) -> String? {
        var running = RunningHash(self)
        running?.update(data.bytes)
        return running?.finish()
    }

    /// A hash computed step by step, for a body that is read in pieces.
    package struct RunningHash: ~Copyable {
        /// Owned: made here, freed in `deinit`, never handed out.
        private let context: OpaquePointer
        private var isSound: Bool

        /// Returns nil if `hash` is not available.
        package init?(_ hash: DigestHash) { self.init(named: hash.name) }

        /// - Parameter name: OpenSSL's name of the function.
        init?(named name: String) {
            ERR_clear_error()
            defer { ERR_clear_error() }
            guard let context = EVP_MD_CTX_new() else { return nil }
            guard let function = EVP_MD_fetch(nil, name, nil) else {
                EVP_MD_CTX_free(context)
                return nil
            }
            self.context = context
            // The context keeps its own reference to the function.
            isSound = EVP_DigestInit_ex(context, function, nil) == 1
            EVP_MD_free(function)
        }

        deinit { EVP_MD_CTX_free(context) }

        package mutating func update(_ bytes: RawSpan) {
            let result = bytes.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
            isSound = isSound && result == 1
        }

        /// The hash of all bytes so far, in lower-case hexadecimal digits; nil if OpenSSL has failed.
        package consuming func finish() -> String? {
            guard let bytes = finishBytes() else { return nil }
            let digits = Array("0123456789abcdef".utf8)
            let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
            return String(decoding: text, as: UTF8.self)
        }

        /// The same hash as bytes.
        consuming func finishBytes() -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            guard isSound, EVP_DigestFinal_ex(context, &bytes, &count) == 1 else { return nil }
            return Array(bytes.prefix(Int(count)))
        }
    }
}

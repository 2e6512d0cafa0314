// The files that a context was made from, with their state at that time: an authority that is removed from
// its file must lose its trust before the process ends, and so must a revoked certificate.
//
// The cost is one `stat` per file and second. It detects a file that was written to or replaced, and a folder
// in which a file was added, removed or replaced by renaming (`openssl rehash`, `update-ca-certificates`),
// but not a file in a folder that was written to in place.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoCore

/// Paths of certificate authorities and revocation lists, with the kernel's data about each. Equal values
/// mean that no file has changed.
struct TrustFiles: Hashable, Sendable {
    private struct Stamp: Hashable {
        let path: String
        /// Device, inode, size, mtime and ctime; empty: the file does not exist.
        let numbers: [Int]

        init(_ path: String) {
            self.path = path
            var status = stat()
            guard stat(path, &status) == 0 else {
                numbers = []
                return
            }
            numbers = [
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino),
                Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                status.st_ctim.tv_nsec,
            ]
        }
    }

    private let stamps: [Stamp]

    /// Records the files of `settings` as they are now.
    init(of settings: TLSSettings) {
        var stamps: [Stamp] = []
        for authorities in settings.certificateAuthorities {
            switch authorities.origin {
            case .system: stamps += Self.systemPaths.map { Stamp($0) }
            case .file(let path), .directory(let path): stamps.append(Stamp(path))
            case .pem, .certificates: break
            }
        }
        for list in settings.revocationLists {
            if case .file(let path) = list.place { stamps.append(Stamp(path)) }
        }
        self.stamps = stamps
    }

    /// Whether the settings name no files.
    var isEmpty: Bool { stamps.isEmpty }

    /// The paths where OpenSSL looks for authorities. Like OpenSSL, this ignores the environment variables in
    /// a privileged program.
    private static var systemPaths: [String] {
        let file = value(of: X509_get_default_cert_file_env()) ?? string(X509_get_default_cert_file())
        let folders = value(of: X509_get_default_cert_dir_env()) ?? string(X509_get_default_cert_dir())
        return [file] + folders.split(separator: ":").map(String.init)
    }

    private static func value(of name: UnsafePointer<CChar>?) -> String? {
        guard rondo_is_privileged() == 0, let name, let value = getenv(name) else { return nil }
        return String(cString: value)
    }

    private static func string(_ text: UnsafePointer<CChar>?) -> String {
        text.map { String(cString: $0) } ?? ""
    }
}

// Logs the secrets of connections for Wireshark and similar tools, if the environment variable SSLKEYLOGFILE
// names a file. The variable and the line format are those of browsers, curl and Python.
//
// The file lets its reader decrypt the connections. A program that runs with more rights than its user
// (AT_SECURE) ignores the variable.

internal import CRondoOpenSSL
internal import Glibc
internal import RondoCore

/// Writes the secrets of connections to the file that SSLKEYLOGFILE names.
enum TLSKeyLog {
    /// Opened when the first context is made, and never closed. -1: no file.
    private static let descriptor: Int32 = {
        guard rondo_is_privileged() == 0, let path = getenv("SSLKEYLOGFILE"), path.pointee != 0 else {
            return -1
        }
        // Readable by the user alone. If the file cannot be opened, nothing is logged: a debugging aid breaks
        // no connection.
        return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    }()

    static func install(on context: OpaquePointer) {
        guard descriptor >= 0 else { return }
        SSL_CTX_set_keylog_callback(context) { _, line in
            guard let line else { return }
            // One write per line: with O_APPEND the lines of several threads do not mix.
            let bytes = Array(UnsafeBufferPointer(start: line, count: strlen(line))) + [CChar(10)]
            _ = write(TLSKeyLog.descriptor, bytes, bytes.count)
        }
    }
}

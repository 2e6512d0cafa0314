import Rondo
import RondoHTTP
import RondoLab

/// The identity of the server in TLS: read from a file, or made.
struct ServerCertificate {
    let identity: TLSIdentity
    /// The path of the certificate, for `--cacert`.
    let path: String
    /// The origin of the certificate, as a sentence for people.
    let origin: String
    /// A folder that is removed at the end.
    private let temporaryFolder: String?

    /// Makes an identity for this run; its key stays in memory.
    /// - Parameter names: The names that clients may use for this machine.
    static func makeForNow(_ names: [String]) throws -> ServerCertificate {
        let identity = try TLSIdentity(selfSignedFor: names)
        var template = Array(
            (NSTemporaryDirectory() as NSString).appendingPathComponent("rondo-serve-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(
                "no temporary folder for the certificate: \(String(cString: strerror(errno)))")
        }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = folder + "/certificate.pem"
        do {
            try OutputFile.write(identity.certificates[0].pemRepresentation, to: path)
        } catch {
            rmdir(folder)
            throw error
        }
        return ServerCertificate(
            identity: identity, path: path, origin: "made for this run, for \(names.joined(separator: ", "))",
            temporaryFolder: folder)
    }

    /// Reads a chain and its key from a PEM file. If there is no file, makes an identity and saves it there.
    static func kept(at path: String, _ names: [String], now: Date = Date()) throws -> ServerCertificate {
        if access(path, F_OK) == 0 {
            let identity = try TLSIdentity(chainFile: path)
            let end = identity.certificates.first.flatMap { $0.notAfter < now ? $0.notAfter : nil }
            let warning = end.map {
                "; it expired on \(HTTPDate.format($0)), and no client trusts it: without the file a new one is made"
            }
            return ServerCertificate(
                identity: identity, path: path, origin: "as the file has it" + (warning ?? ""),
                temporaryFolder: nil)
        }
        let identity = try TLSIdentity(selfSignedFor: names, validFor: 365 * 86_400)
        try writePrivately(identity.certificates[0].pemRepresentation + identity.privateKeyPEM, to: path)
        return ServerCertificate(
            identity: identity, path: path,
            origin: "made, for \(names.joined(separator: ", ")); the file holds its key as well, and is kept",
            temporaryFolder: nil)
    }

    /// Writes to a new file that only its owner can read, from the first byte on.
    private static func writePrivately(_ text: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw CommandFailure("cannot write \(path): \(String(cString: strerror(errno)))")
        }
        var text = text
        let code = text.withUTF8 { writeAll(file, UnsafeRawBufferPointer($0)) }
        close(file)
        guard code == 0 else {
            unlink(path)
            throw CommandFailure("cannot write \(path): \(String(cString: strerror(code)))")
        }
    }

    /// Removes the files that were made for this run.
    func discard() {
        guard let temporaryFolder else { return }
        unlink(path)
        rmdir(temporaryFolder)
    }
}

import RondoCore
import RondoTestSupport

/// Certificates that a shell script makes, in a folder that is removed with this object.
final class MadeCertificates {
    private let folder = temporaryPath()

    /// - Parameters:
    ///   - script: Goes on in the folder where `cnf` is the configuration of an authority for `openssl ca`, `key.pem` a
    ///     key, and `any.csr` a request for it.
    ///   - arguments: The script's `$1` and so on.
    init(_ script: String, _ arguments: String...) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try TestServerProcess.run(["sh", "-ec", Self.beginning + script, folder] + arguments)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func path(_ name: String) -> String { folder + "/" + name }

    private static let beginning = """
        cd "$0"
        touch index.txt
        printf '[ca]\\ndefault_ca=t\\n[t]\\ndatabase=index.txt\\nnew_certs_dir=.\\nrand_serial=yes\\n' > cnf
        printf 'default_md=sha256\\npolicy=p\\nunique_subject=no\\n[p]\\ncommonName=supplied\\n' >> cnf
        openssl ecparam -name prime256v1 -genkey -noout -out key.pem
        openssl req -new -key key.pem -subj /CN=any -out any.csr

        """
}

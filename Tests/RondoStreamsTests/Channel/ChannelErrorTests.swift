import Glibc
import Testing

@testable import RondoStreams

/// The errors of channels, as values.
@Suite struct ChannelErrorTests {
    @Test func `UC-59 a kernel that refuses to move bytes is no failure of TLS`() {
        func error(_ reason: TLSError.Reason) -> ChannelError {
            .tls(TLSError(reason, host: "localhost"))
        }
        let ofTLS: [TLSError.Reason] = [
            .certificateMissing, .protocolVersion(""), .alert(.handshakeFailure), .closedDuringHandshake(nil),
            .notTLS(""), .protocolViolation(""), .settings(""), .certificateRequired(.certificateRequired),
        ]
        for reason in ofTLS { #expect(error(reason).isFailureOfTLS, "\(reason)") }
        #expect(!error(.system(ECONNRESET)).isFailureOfTLS)
        #expect(!ChannelError.connect(host: "localhost", port: 443, []).isFailureOfTLS)
    }
}

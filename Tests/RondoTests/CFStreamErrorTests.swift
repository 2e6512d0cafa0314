import RondoTestSupport
import Testing

@testable import Rondo

/// The errors of streams by domain and number.
@Suite struct CFStreamErrorTests {
    @Test func `ST-38 an error of a stream has the domain and number of its kind`() {
        let name = NSError(
            domain: "kCFErrorDomainCFNetwork", code: 2,
            userInfo: ["kCFGetAddrInfoFailureKey": NSNumber(value: EAI_NONAME)])
        let cases: [(NSError, Int, Int32)] = [
            (
                NSError(domain: NSPOSIXErrorDomain, code: Int(ECONNREFUSED)), kCFStreamErrorDomainPOSIX,
                ECONNREFUSED
            ),
            (name, Int(kCFStreamErrorDomainNetDB), EAI_NONAME),
            (NSError(domain: NSStreamSocketSSLErrorDomain, code: -9807), Int(kCFStreamErrorDomainSSL), -9807),
            (NSError(domain: "example", code: 7), -1, 7),
        ]
        for (error, domain, number) in cases {
            #expect(CFStreamError(ofStream: error) == CFStreamError(domain: domain, error: number))
        }
        #expect(CFStreamError(ofStream: nil) == CFStreamError())
    }
}

import Rondo
import Testing

@testable import RondoConnections

/// The names of separate locations in a cache.
@Suite struct CacheLocationTests {
    @Test(arguments: [
        // From the FNV reference's own test vectors.
        ("", "6c62272e07bb014262b821756295c58d"), ("a", "d228cb696f1a8caf78912b704e4a8964"),
        ("foobar", "343e1662793c64bf6f0d3597ba446f18"),
    ])
    func `the hash of a text is its FNV-1a of 128 bits`(text: String, hash: String) {
        #expect(ForeignStore.hash(of: text) == hash)
    }
}

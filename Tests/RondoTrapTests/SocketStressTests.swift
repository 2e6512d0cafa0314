import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SocketStressTests {
    /// The same as `make stress-sockets`, and less of it.
    @Test(arguments: [1, 2])
    func `CS-12 CS-17 PM-9 PM-10 FH-11 FH-15 threads and callbacks may close and invalidate at any moment`(
        seed: Int
    ) throws {
        try BuiltFiles.play("stress", ["200", "4", "\(seed)"], of: "RondoSocketProbe")
    }
}

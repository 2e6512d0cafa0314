import Rondo
import RondoTestSupport
import Testing

struct InterfaceTests {
    /// Compares the modules that were built with these tests; builds nothing.
    @Test func `the public interface is the one that Documentation/Interface.txt lists`() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let modules = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "Modules")
        let script = root.appendingPathComponent("Scripts/interface").path
        // A difference is an error that holds what the script says.
        try TestServerProcess.run(["python3", script, "--check", "--modules", modules.path])
    }
}

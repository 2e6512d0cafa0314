internal import RondoCore
internal import RondoTesting
public import XCTest

/// Lets XCTest's waits serve the objects that are scheduled on Rondo's main loop.
///
/// `wait(for:)`, `waitForExpectations` and async test methods run Foundation's main loop, which does not
/// serve Rondo's main loop. After `install()` the default mode of Rondo's main loop is a guest of
/// Foundation's (bridge A, `RunLoop.hostInFoundation(mode:)`), and both are served (rules XT-1 to XT-4).
public enum RondoXCTest {
    /// Sets the bridge up. Call it before the first wait, from any thread; further calls do nothing.
    /// `RondoTestCase` calls it.
    public static func install() {
        if Thread.isMainThread { return host() }
        // XCTest runs tests on the main thread, which drains its queue in the first wait.
        DispatchQueue.main.async { host() }
    }

    private static func host() { RondoCore.RunLoop.main.hostInFoundation(mode: .default) }
}

/// A test case whose waits serve Rondo's main loop; see `RondoXCTest`.
///
/// A wait that times out prints what every run loop of the process holds, and why it is not delivered (rule
/// XT-12).
open class RondoTestCase: XCTestCase {
    override open class func setUp() {
        super.setUp()
        RondoXCTest.install()
    }

    override open func recordFailure(
        withDescription description: String, inFile filePath: String, atLine lineNumber: Int, expected: Bool
    ) {
        if description.contains("Exceeded timeout") {
            FileHandle.standardError.write(Data("\(description)\n\(explainRunLoops())\n".utf8))
        }
        super.recordFailure(
            withDescription: description, inFile: filePath, atLine: lineNumber, expected: expected)
    }
}

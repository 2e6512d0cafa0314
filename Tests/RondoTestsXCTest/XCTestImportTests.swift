// XCTest re-exports Foundation, so a test of XCTest's says which it means.

import Rondo
import XCTest

import class Rondo.InputStream
import class Rondo.RunLoop
import class Rondo.Timer

final class XCTestImportTests: XCTestCase {
    func testImportClassDecidesBesideXCTest() {
        XCTAssertEqual(String(reflecting: RunLoop.self), "RondoCore.RunLoop")
        XCTAssertEqual(String(reflecting: Timer.self), "RondoCore.Timer")
        XCTAssertEqual(String(reflecting: Rondo.Port.self), "RondoCore.Port")
        XCTAssertEqual(String(reflecting: InputStream.self), "RondoStreams.InputStream")
        XCTAssertEqual(String(reflecting: Rondo.Process.self), "RondoSystem.Process")
        RunLoop.main.perform(inModes: [.tracking]) {}
    }
}

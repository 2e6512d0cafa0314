// A file that imports Foundation as well says which it means: `import class Rondo.RunLoop`.

import Foundation
import Rondo
import Testing

import class Rondo.InputStream
import class Rondo.OutputStream
import class Rondo.Port
import class Rondo.Process
import class Rondo.RunLoop
import class Rondo.Timer

struct ImportClassTests {
    @Test func `beside Foundation, import class decides for Rondo's types`() {
        #expect(String(reflecting: RunLoop.self) == "RondoCore.RunLoop")
        #expect(String(reflecting: Timer.self) == "RondoCore.Timer")
        #expect(String(reflecting: Port.self) == "RondoCore.Port")
        #expect(String(reflecting: InputStream.self) == "RondoStreams.InputStream")
        #expect(String(reflecting: OutputStream.self) == "RondoStreams.OutputStream")
        #expect(String(reflecting: Process.self) == "RondoSystem.Process")
        let mode: RunLoop.Mode = .tracking
        RunLoop.main.perform(inModes: [mode]) {}
    }
}

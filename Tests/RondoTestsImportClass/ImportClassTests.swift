// A file that imports Foundation as well says which it means: `import class Rondo.RunLoop`.

import Foundation
import FoundationNetworking
import Rondo
import Testing

import class Rondo.InputStream
import class Rondo.NotificationQueue
import class Rondo.OutputStream
import class Rondo.Port
import protocol Rondo.PortDelegate
import class Rondo.PortMessage
import class Rondo.Process
import class Rondo.RunLoop
import class Rondo.SocketPort
import class Rondo.Timer
import class Rondo.URLSession
import class Rondo.URLSessionConfiguration
import protocol Rondo.URLSessionDataDelegate

struct ImportClassTests {
    @Test func `US-3 beside Foundation, import class decides for Rondo's types`() {
        #expect(String(reflecting: RunLoop.self) == "RondoCore.RunLoop")
        #expect(String(reflecting: Timer.self) == "RondoCore.Timer")
        #expect(String(reflecting: Port.self) == "RondoCore.Port")
        #expect(String(reflecting: InputStream.self) == "RondoStreams.InputStream")
        #expect(String(reflecting: OutputStream.self) == "RondoStreams.OutputStream")
        #expect(String(reflecting: URLSession.self) == "RondoSessions.URLSession")
        let delegate: (any URLSessionDataDelegate)? = nil
        _ = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        #expect(String(reflecting: Process.self) == "RondoSystem.Process")
        #expect(String(reflecting: NotificationQueue.self) == "RondoCore.NotificationQueue")
        #expect(String(reflecting: SocketPort.self) == "RondoStreams.SocketPort")
        #expect(String(reflecting: PortMessage.self) == "RondoCore.PortMessage")
        #expect(String(reflecting: (any PortDelegate).self) == "RondoCore.PortDelegate")
        let mode: RunLoop.Mode = .tracking
        RunLoop.main.perform(inModes: [mode]) {}
    }
}

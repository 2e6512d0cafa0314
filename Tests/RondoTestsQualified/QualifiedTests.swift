// A file that imports Foundation as well can name the module: `Rondo.RunLoop`.

import Foundation
import FoundationNetworking
import Rondo
import Testing

struct QualifiedTests {
    @Test func `US-3 beside Foundation, the module's name decides`() {
        #expect(String(reflecting: Rondo.RunLoop.self) == "RondoCore.RunLoop")
        #expect(String(reflecting: Rondo.Timer.self) == "RondoCore.Timer")
        #expect(String(reflecting: Rondo.Port.self) == "RondoCore.Port")
        #expect(String(reflecting: Rondo.URLSession.self) == "RondoSessions.URLSession")
        #expect(
            String(reflecting: FoundationNetworking.URLSession.self) == "FoundationNetworking.URLSession")
        #expect(String(reflecting: Foundation.RunLoop.self) == "Foundation.RunLoop")
        #expect(String(reflecting: Rondo.InputStream.self) == "RondoStreams.InputStream")
        #expect(String(reflecting: Rondo.OutputStream.self) == "RondoStreams.OutputStream")
        #expect(String(reflecting: Rondo.Process.self) == "RondoSystem.Process")
        #expect(String(reflecting: Foundation.Process.self) == "Foundation.Process")
        #expect(String(reflecting: Rondo.NotificationQueue.self) == "RondoCore.NotificationQueue")
        #expect(String(reflecting: Rondo.SocketPort.self) == "RondoStreams.SocketPort")
        let mode: Rondo.RunLoop.Mode = .tracking
        Rondo.RunLoop.main.perform(inModes: [mode]) {}
        let delegate: (any Rondo.URLSessionDataDelegate)? = nil
        _ = Rondo.URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }
}

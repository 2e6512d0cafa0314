// What `import Rondo` promises to a file that imports nothing else.

import Rondo
import RondoTestSupport
import Testing

struct ImportTests {
    @Test func `unqualified names mean Rondo's types`() {
        #expect(String(reflecting: RunLoop.self) == "RondoCore.RunLoop")
        #expect(String(reflecting: Timer.self) == "RondoCore.Timer")
        #expect(String(reflecting: Port.self) == "RondoCore.Port")
        #expect(String(reflecting: InputStream.self) == "RondoStreams.InputStream")
        #expect(String(reflecting: OutputStream.self) == "RondoStreams.OutputStream")
        #expect(String(reflecting: Process.self) == "RondoSystem.Process")
        // Only Rondo's has these.
        _ = RunLoop.Source {}
        _ = RunLoop.Observer(activities: .exit) { _, _ in }
    }

    @Test func `US-1 the names of sessions mean Rondo's types`() {
        for type in [
            URLSession.self, URLSessionConfiguration.self, URLSessionTask.self, URLSessionDataTask.self,
            URLSessionUploadTask.self, URLSessionDownloadTask.self, URLSessionTaskMetrics.self,
            NSURLSession.self, NSURLSessionTask.self, (any URLSessionDelegate).self,
            (any URLSessionTaskDelegate).self, (any URLSessionDataDelegate).self,
            (any URLSessionDownloadDelegate).self, URLSessionWebSocketTask.self,
            URLSessionStreamTask.self, (any URLSessionStreamDelegate).self, NSURLSessionStreamTask.self,
            (any URLSessionWebSocketDelegate).self, NSURLSessionWebSocketTask.self,
        ] as [Any.Type] {
            #expect(String(reflecting: type).contains("RondoSessions."), "\(type)")
        }
        #expect(NSURLSessionTransferSizeUnknown == -1)
    }

    @Test func `a stream is scheduled in the usual spelling, and is one of Foundation's`() throws {
        let delivered = try onLoopThread { _ in
            let stream = InputStream(data: Data("body".utf8))
            let events = Events()
            stream.delegate = events
            stream.schedule(in: .current, forMode: .default)
            stream.open()
            _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 60))
            stream.remove(from: .current, forMode: .default)
            // It is taken wherever Foundation's is.
            var request = URLRequest(url: URL(fileURLWithPath: "/"))
            request.httpBodyStream = stream
            stream.close()
            return events.count
        }
        #expect(delivered > 0)
    }

    /// As a stream that wraps another one.
    private final class Input: InputStream {
        var calls: [String] = []

        override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
            calls.append("schedule")
            super.schedule(in: aRunLoop, forMode: mode)
        }

        override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
            calls.append("remove")
            super.remove(from: aRunLoop, forMode: mode)
        }
    }

    private final class Output: OutputStream {
        var calls: [String] = []

        override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
            calls.append("schedule")
            super.schedule(in: aRunLoop, forMode: mode)
        }

        override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
            calls.append("remove")
            super.remove(from: aRunLoop, forMode: mode)
        }
    }

    @Test func `a subclass of a stream overrides the schedule, also for a value of the type Stream`() throws {
        let calls = try onLoopThread { loop -> [[String]] in
            let (input, output) = (Input(data: Data()), Output(toMemory: ()))
            input.schedule(in: loop, forMode: .default)
            input.remove(from: .current, forMode: .default)
            output.schedule(in: .current, forMode: .default)
            output.remove(from: loop, forMode: .default)
            for stream in [input, output] as [Stream] {
                stream.schedule(in: loop, forMode: .default)
                stream.remove(from: loop, forMode: .default)
                stream.schedule(in: .current, forMode: .default)
                stream.remove(from: .current, forMode: .default)
            }
            return [input.calls, output.calls]
        }
        let thrice = Array(repeating: ["schedule", "remove"], count: 3).flatMap { $0 }
        #expect(calls == [thrice, thrice])
    }

    private final class Events: NSObject, StreamDelegate {
        var count = 0

        func stream(_ aStream: Stream, handle eventCode: Stream.Event) { count += 1 }
    }

    @Test func `Foundation and FoundationNetworking come along`() {
        let request = URLRequest(url: URL(fileURLWithPath: "/"))
        #expect(Data(request.url?.path.utf8 ?? "".utf8).count == 1)
        let response: URLResponse.Type = HTTPURLResponse.self
        #expect(response == HTTPURLResponse.self)
        let mode: RunLoop.Mode = .default
        #expect(mode.rawValue == "kCFRunLoopDefaultMode")
        #expect(RunLoop.Mode.common.rawValue == "kCFRunLoopCommonModes")
    }

    @Test func `Cocoa's names mean the same types`() {
        #expect(NSRunLoop.self == RunLoop.self)
        #expect(NSTimer.self == Timer.self)
        #expect(NSURLConnection.self == URLConnection.self)
        #expect(CFRunLoop.self == RunLoop.self)
        #expect(CFRunLoopGetMain() === RunLoop.main)
        #expect(kCFRunLoopDefaultMode == .default)
    }
}

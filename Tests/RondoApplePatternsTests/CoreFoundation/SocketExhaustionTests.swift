import Rondo
import RondoTestSupport
import Testing

/// In processes of their own, which have few descriptors.
@Suite struct SocketExhaustionTests {
    @Test func `CS-4 connections wait while descriptors have run out, and the loop does not spin`() async {
        await #expect(processExitsWith: .success) {
            try onLoopThread { loop in
                let notes = ContextNotes()
                let (listening, port) = listener(.acceptCallBack, notes) {
                    socket, type, address, data, info in
                    close(data!.load(as: CFSocketNativeHandle.self))
                    noteAll(socket, type, address, data, info)
                }
                schedule(listening)
                passes(1)
                let to = loopbackAddress(port)
                let client = Rondo.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                precondition(
                    connect(client, to.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(to.length))
                        == 0)
                withNoDescriptorLeft {
                    let waits = EventLog()
                    waits.observe(.beforeWaiting, of: loop, in: .default)
                    // For several pauses.
                    CFRunLoopRunInMode(.defaultMode, 0.35, false)
                    precondition(
                        notes.log.entries.isEmpty && waits.entries.count < 30, "\(waits.entries.count)")
                }
                runLoop { !notes.log.entries.isEmpty }
                precondition(notes.log.entries == ["accept"])
                CFSocketInvalidate(listening)
            }
        }
    }
}

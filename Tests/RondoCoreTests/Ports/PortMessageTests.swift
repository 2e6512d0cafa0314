import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoCore

/// Messages between the ports of one process.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct PortMessageTests {
    @Test func `PM-1 a port without a delegate keeps a mode alive and drops what is sent to it`() throws {
        try onLoopThread { loop in
            let port = Port()
            loop.add(port, forMode: .work)
            #expect(port.send("lost"))
            #expect(loop.poll(.work) == .timedOut)
            let inbox = Inbox(port)
            #expect(loop.poll(.work) == .timedOut)
            #expect(inbox.texts.isEmpty)
            #expect(port.send("kept"))
            #expect(loop.poll(.work) == .timedOut)
            #expect(inbox.texts == ["kept"])
        }
    }

    /// Becomes invalid as soon as it has said that it is valid, as if by another thread.
    private final class FleetingPort: Port, @unchecked Sendable {
        // `@unchecked Sendable` as its superclass: it adds nothing.
        override var isValid: Bool {
            defer { invalidate() }
            return super.isValid
        }
    }

    @Test func `PM-9 a port that becomes invalid while a loop adds it stays in no mode`() throws {
        try onLoopThread { loop in
            loop.add(FleetingPort(), forMode: .work)
            #expect(loop.poll(.work) == .finished)
        }
    }

    @Test
    func `PM-13 a port has room for messages of peers as long as number and bytes are below their limits`() {
        let port = Port()
        port.maximumQueuedMessages = 3
        func add(_ count: Int) {
            port.enqueueFromPeer(PortContent(msgid: 0, components: [.data(Data(count: count))], sender: nil))
        }
        add(10_000)
        #expect(port.hasRoomForPeers(bytes: 20_000))
        add(10_000)
        #expect(!port.hasRoomForPeers(bytes: 20_000) && port.hasRoomForPeers(bytes: 1 << 20))
        add(0)
        #expect(!port.hasRoomForPeers(bytes: 1 << 20))
    }

    @Test func `PM-2 send hands the message to the port, and false says that it did not by the date`() throws
    {
        let port = Port()
        port.maximumQueuedMessages = 2
        #expect(port.send("1", before: .distantPast))
        #expect(port.send("2", before: .distantPast))
        #expect(!port.send("3", before: .distantPast))
        let began = LoopClock.systemNow
        #expect(!port.send("3", before: Date(timeIntervalSinceNow: 0.05)))
        #expect(LoopClock.systemNow.seconds(since: began) >= 0.049)
    }

    @Test
    func
        `PM-3 the delegate is called on the loop's thread, in a mode that holds the port, one message a call`()
        throws
    {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            inbox.onMessage = { _, _ in
                #expect(loop.isCurrent)
                #expect(loop.currentMode == .work)
            }
            loop.add(port, forMode: .work)
            loop.add(Port(), forMode: .default)
            let sender = LoopThread { _ in
                for number in 0..<10 { #expect(port.send("\(number)")) }
            }
            try? sender.value()
            loop.poll(.default)
            #expect(inbox.texts.isEmpty)
            while inbox.texts.count < 10, loop.poll(.work) == .timedOut {}
            #expect(inbox.texts == (0..<10).map { "\($0)" })
        }
    }

    @Test func `PM-3 PM-10 two loops that hold a port keep the order of each of many senders`() throws {
        let port = Port()
        let inbox = Inbox(port)
        let senders = 4
        let each = 2_000
        let done = Latch()
        inbox.onMessage = { _, count in if count == senders * each { done.open() } }
        let workers = (0..<2).map { _ in
            LoopThread { loop in
                loop.add(port, forMode: .default)
                loop.run()
            }
        }
        for worker in workers { _ = try worker.loop }
        let threads = (0..<senders).map { sender in
            LoopThread { _ in
                for number in 0..<each {
                    #expect(port.send("\(sender)", before: .distantFuture, msgid: number))
                }
            }
        }
        for thread in threads { try thread.value() }
        try done.wait()
        for sender in 0..<senders {
            #expect(inbox.numbers(from: "\(sender)") == Array(0..<each).map { UInt32($0) })
        }
        #expect(inbox.mostAtOnce == 1)
        port.invalidate()
        for worker in workers {
            try worker.loop.wakeUp()
            try worker.value()
        }
    }

    @Test func `PM-4 the queue takes 64 messages, then the sender waits for room`() throws {
        let port = Port()
        let inbox = Inbox(port)
        #expect(Port.defaultMaximumQueuedMessages == 64)
        for number in 0..<64 { #expect(port.send("\(number)", before: .distantPast)) }
        #expect(!port.send("64", before: .distantPast))
        let sender = LoopThread { _ in port.send("64", before: .distantFuture) }
        try onLoopThread { loop in
            loop.add(port, forMode: .default)
            while inbox.texts.count < 65, loop.poll() == .timedOut {}
        }
        #expect(try sender.value())
        #expect(inbox.texts == (0...64).map { "\($0)" })
    }

    @Test func `PM-4 a larger limit lets those go on that wait, and an invalidation ends their wait`() throws
    {
        let port = Port()
        port.maximumQueuedMessages = 0
        #expect(port.maximumQueuedMessages == 1)
        #expect(port.send("1", before: .distantPast))
        let second = LoopThread { _ in port.send("2", before: .distantFuture) }
        try waitFor("the sender to wait") { port.state.withLock { $0.queue.blockedCount } == 1 ? () : nil }
        port.maximumQueuedMessages = 2
        #expect(try second.value())
        let third = LoopThread { _ in port.send("3", before: .distantFuture) }
        try waitFor("the sender to wait") { port.state.withLock { $0.queue.blockedCount } == 1 ? () : nil }
        port.invalidate()
        #expect(try !third.value())
    }

    @Test func `PM-4 a sender that gives up leaves its place to the next`() throws {
        let port = Port()
        port.maximumQueuedMessages = 1
        let inbox = Inbox(port)
        #expect(port.send("first", before: .distantPast))
        let hasty = LoopThread { _ in port.send("hasty", before: Date(timeIntervalSinceNow: 0.02)) }
        let patient = LoopThread { _ in port.send("patient", before: .distantFuture) }
        #expect(try !hasty.value())
        try onLoopThread { loop in
            loop.add(port, forMode: .default)
            while !inbox.texts.contains("patient"), loop.poll() == .timedOut {}
        }
        #expect(try patient.value())
        #expect(inbox.texts == ["first", "patient"])
    }

    @Test func `PM-4 a thread that waits for its own loop to take messages is warned`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            try onLoopThread { loop in
                let port = Port()
                port.maximumQueuedMessages = 1
                loop.add(port, forMode: .default)
                precondition(port.send("one"))
                precondition(!port.send("two", before: Date(timeIntervalSinceNow: 0.01)))
                precondition(!port.send("three", before: Date(timeIntervalSinceNow: 0.01)))
                precondition(!port.send(before: .distantPast, components: [1], from: nil, reserved: 0))
                precondition(!port.send(before: .distantPast, components: [1], from: nil, reserved: 0))
            }
            let entries = LogCatcher.log.entries
            precondition(entries.count == 2, "\(entries)")
            precondition(entries[0].contains("waits until its limit date"), entries[0])
            precondition(entries[1].contains("neither Data nor a Port"), entries[1])
        }
    }

    @Test func `PM-5 components are data and ports, copied, and anything else is refused`() throws {
        try onLoopThread { loop in
            let (port, other) = (Port(), Port())
            let inbox = Inbox(port)
            loop.add(port, forMode: .default)
            #expect(!port.send(before: .distantPast, components: ["text"], from: nil, reserved: 0))
            #expect(!port.send(before: .distantPast, components: [Data(), 1], from: nil, reserved: 0))
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
            defer { buffer.deallocate() }
            let sent = Data(repeating: UInt8(ascii: "a"), count: 64)
            buffer.copyBytes(from: sent)
            let bytes = NSData(bytesNoCopy: buffer.baseAddress!, length: 64, freeWhenDone: false)
            #expect(port.send(before: .distantPast, components: [bytes, other], from: nil, reserved: 0))
            buffer[0] = UInt8(ascii: "x")
            #expect(port.send(before: .distantPast, components: nil, from: nil, reserved: 0))
            inbox.onMessage = { message, count in
                guard count == 1 else { return #expect(message.components?.isEmpty == true) }
                #expect((message.components?[0] as? NSData) == NSData(data: sent))
                #expect((message.components?[0] as? Data) == sent)
                #expect(message.components?[1] === other)
            }
            loop.poll()
            loop.poll()
            #expect(inbox.count == 2)
        }
    }

    @Test func `PM-6 the receiver answers through the send port, and msgid comes through`() throws {
        let (port, answers) = (Port(), Port())
        let echo = Inbox(port)
        echo.onMessage = { message, _ in
            #expect(message.msgid == 0xFFFF_FFFE)
            #expect(message.receivePort === port)
            let answer = PortMessage(
                sendPort: message.sendPort, receivePort: message.receivePort, components: message.components)
            answer.msgid = 7
            #expect(answer.send(before: .distantFuture))
        }
        let inbox = Inbox(answers)
        let worker = LoopThread { loop in
            loop.add(port, forMode: .default)
            loop.run()
        }
        try onLoopThread { loop in
            loop.add(answers, forMode: .default)
            inbox.onMessage = { message, _ in
                #expect(message.msgid == 7)
                #expect(message.sendPort === port)
                loop.stop()
            }
            #expect(port.send("ping", before: .distantFuture, msgid: 0xFFFF_FFFE, from: answers))
            #expect(loop.runOn() == .stopped)
        }
        #expect(inbox.texts == ["ping"])
        port.invalidate()
        try worker.loop.wakeUp()
        try worker.value()
    }

    @Test func `PM-7 each message is a handled source, and one sent in handle comes in a later pass`() throws
    {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            let log = EventLog()
            inbox.onMessage = { _, count in
                log.note("message")
                if count == 1 { #expect(port.send("again")) }
            }
            loop.add(port, forMode: .default)
            log.observe(.beforeSources, of: loop, in: .default)
            #expect(port.send("first"))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .handledSource)
            #expect(log.entries == ["beforeSources", "message"])
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .handledSource)
            #expect(log.entries == ["beforeSources", "message", "beforeSources", "message"])
        }
    }

    @Test func `PM-7 a run nested in handle goes on with the next message`() throws {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            let log = EventLog()
            inbox.onMessage = { message, count in
                log.note("\(message.text) begins")
                if count == 1 { loop.poll() }
                log.note("\(message.text) ends")
            }
            loop.add(port, forMode: .default)
            #expect(port.send("outer"))
            #expect(port.send("inner"))
            loop.poll()
            #expect(log.entries == ["outer begins", "inner begins", "inner ends", "outer ends"])
        }
    }

    /// - Parameter inside: The mode of the nested run. The loop has the port in the default mode until then.
    @Test(arguments: [.default, .work] as [RunLoop.Mode])
    func `PM-3 PM-7 a run nested in handle gets a message that another loop has found`(
        inside: RunLoop.Mode
    ) throws {
        let (port, keepAlive) = (Port(), Port())
        let inbox = Inbox(port)
        let other = LoopThread { loop in
            loop.add(keepAlive, forMode: .default)
            loop.run()
        }
        let otherLoop = try other.loop
        try otherLoop.waitUntilAsleep()
        let nested = Mutex<RunLoop.RunResult?>(nil)
        try onLoopThread { loop in
            inbox.onMessage = { _, count in
                guard count == 1 else { return }
                otherLoop.add(port, forMode: .default)
                #expect(port.send("inner"))
                // The other loop takes the signal, and leaves the message.
                let takesSignal: () throws -> Void = {
                    try waitFor("the other loop") { port.source?.isSignalled ?? true ? nil : () }
                    try otherLoop.waitUntilServed()
                }
                try? takesSignal()
                if inside != .default {
                    loop.remove(port, forMode: .default)
                    loop.add(port, forMode: inside)
                    try? takesSignal()
                }
                let result = loop.run(in: inside, for: testPatience + 5, returnAfterSourceHandled: true)
                nested.withLock { $0 = result }
            }
            loop.add(port, forMode: .default)
            #expect(port.send("outer"))
            loop.poll()
        }
        #expect(nested.withLock { $0 } == .handledSource)
        #expect(inbox.texts == ["outer", "inner"])
        port.invalidate()
        keepAlive.invalidate()
        otherLoop.wakeUp()
        try other.value()
    }

    @Test func `PM-8 the delegate is held weakly, and can be taken back`() throws {
        try onLoopThread { loop in
            let port = Port()
            loop.add(port, forMode: .default)
            var inbox: Inbox? = Inbox(port)
            let texts = inbox?.texts
            #expect(port.delegate() === inbox)
            inbox = nil
            #expect(texts == [])
            #expect(port.delegate() == nil)
            #expect(port.send("lost"))
            loop.poll()
            let other = Inbox(port)
            port.setDelegate(nil)
            #expect(port.send("lost too"))
            loop.poll()
            #expect(other.texts.isEmpty)
        }
    }

    @Test func `PM-9 invalidate drops what waits, posts once, and makes send false`() throws {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            let log = EventLog()
            let token = NotificationCenter.default.addObserver(
                forName: Port.didBecomeInvalidNotification, object: port, queue: nil
            ) { _ in log.note("invalid") }
            loop.add(port, forMode: .default)
            #expect(port.send("dropped"))
            port.invalidate()
            port.invalidate()
            #expect(!port.isValid)
            #expect(!port.send("refused", before: .distantFuture))
            #expect(loop.poll() == .finished)
            #expect(log.entries == ["invalid"])
            #expect(inbox.texts.isEmpty)
            #expect(port.whyNotDelivering.reason == .invalid)
            NotificationCenter.default.removeObserver(token)
        }
    }

    @Test func `PM-9 invalidate in handle ends the messages that wait`() throws {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            inbox.onMessage = { _, _ in port.invalidate() }
            loop.add(port, forMode: .default)
            #expect(port.send("one"))
            #expect(port.send("two"))
            #expect(loop.runOn() == .finished)
            #expect(inbox.texts == ["one"])
        }
    }

    @Test func `PM-4 PM-10 100,000 messages go between two threads with a port each`() throws {
        let (there, back) = (Port(), Port())
        let echo = Inbox(there)
        echo.keepsTexts = false
        echo.onMessage = { message, _ in
            #expect(
                message.sendPort?.send(
                    before: .distantFuture, msgid: Int(message.msgid), components: nil, from: nil, reserved: 0
                )
                    == true)
        }
        let worker = LoopThread { loop in
            loop.add(there, forMode: .default)
            loop.run()
        }
        let total = 50_000
        let sum = try onLoopThread { loop in
            let inbox = Inbox(back)
            inbox.keepsTexts = false
            let sum = Mutex((next: UInt32(0), inOrder: true))
            inbox.onMessage = { message, count in
                sum.withLock {
                    if message.msgid != $0.next { $0.inOrder = false }
                    $0.next += 1
                }
                if count == total { loop.stop() }
            }
            loop.add(back, forMode: .default)
            let sender = LoopThread { _ in
                for number in 0..<total {
                    #expect(
                        there.send(
                            before: .distantFuture, msgid: number, components: nil, from: back, reserved: 0))
                }
            }
            #expect(loop.runOn() == .stopped)
            try? sender.value()
            return sum.withLock { $0.inOrder ? Int($0.next) : -1 }
        }
        #expect(sum == total)
        there.invalidate()
        try worker.loop.wakeUp()
        try worker.value()
    }

    @Test func `PM-1 a port says why nothing comes, and what waits in it`() throws {
        try onLoopThread { loop in
            let port = Port()
            port.label = "commands"
            #expect(port.whyNotDelivering.reason == .notScheduled)
            #expect(port.send("one"))
            #expect(port.send("two"))
            loop.add(port, forMode: .work)
            #expect(port.label == "commands")
            #expect(
                loop.debugDescription.contains("port “commands”, 2 messages wait"), "\(loop.debugDescription)"
            )
            #expect(port.whyNotDelivering.reason == .loopNeverRan)
            loop.add(Port(), forMode: .default)
            loop.poll()
            #expect(port.whyNotDelivering.reason == .loopNotRunning)
        }
    }

    @Test func `PM-3 an instrument is told of the delegate's calls by the port's label`() throws {
        let recorder = CallRecorder()
        try InstrumentTurn.take {
            RunLoop.instrument = recorder
            defer { RunLoop.instrument = nil }
            try onLoopThread { loop in
                let port = Port()
                port.label = "traced"
                let inbox = Inbox(port)
                loop.add(port, forMode: .default)
                #expect(port.send("x"))
                loop.poll()
                #expect(inbox.count == 1)
            }
        }
        #expect(recorder.log.entries == ["traced handle(_:)"])
    }

    @Test func `PM-3 a port in the common modes gets its messages in each of them`() throws {
        try onLoopThread { loop in
            let port = Port()
            let inbox = Inbox(port)
            loop.add(port, forMode: .common)
            loop.add(Port(), forMode: .work)
            for (index, mode) in [RunLoop.Mode.default, .tracking, .work].enumerated() {
                #expect(port.send("\(index)"))
                loop.poll(mode)
            }
            #expect(inbox.texts == ["0", "1"])
            loop.addCommonMode(.work)
            loop.poll(.work)
            #expect(inbox.texts == ["0", "1", "2"])
        }
    }

    @Test func `PM-9 PM-10 ports are sent to, made invalid and dropped on other threads meanwhile`() throws {
        for round in 0..<200 {
            var port: Port? = Port()
            let inbox = port.map(Inbox.init)
            let worker = LoopThread { [port] loop in
                if let port { loop.add(port, forMode: .default) }
                loop.run()
            }
            let senders = (0..<2).map { _ in
                LoopThread { [port] _ in
                    while port?.isValid ?? false, port?.send("x", before: .distantFuture) ?? false {}
                }
            }
            if round.isMultiple(of: 2) {
                try waitFor("a message") { inbox?.count == 0 ? nil : () }
            }
            port?.invalidate()
            port = nil
            for sender in senders { try sender.value() }
            try worker.loop.wakeUp()
            try worker.value()
        }
    }

    @Test func `PM-9 a port that two threads add and remove at once is freed in the end`() throws {
        let thread = RunLoopThread(name: "ports", mode: .work)
        let loop = thread.start()
        for _ in 0..<200 {
            weak var weakPort: Port?
            do {
                let port = Port()
                weakPort = port
                let others = (0..<2).map { number in
                    LoopThread { [port] _ in
                        for round in 0..<40 {
                            if round.isMultiple(of: 2) == (number == 0) {
                                loop.add(port, forMode: .work)
                            } else {
                                loop.remove(port, forMode: .work)
                            }
                        }
                    }
                }
                for other in others { try other.value() }
                port.invalidate()
            }
            try waitFor("the end of a port") { weakPort == nil ? () : nil }
        }
        thread.stop()
        thread.join()
    }

    @Test func `PM-1 a port that is dropped with messages and without a loop is freed`() {
        weak var weakPort: Port?
        do {
            let port = Port()
            weakPort = port
            #expect(port.send("x"))
        }
        #expect(weakPort == nil)
    }
}

/// Notes the delegate's calls of ports.
private final class CallRecorder: RunLoop.Instrument {
    let log = EventLog()

    func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
        if event.kind == .delegate, event.label == "traced" { log.note("traced \(event.method ?? "")") }
    }
}

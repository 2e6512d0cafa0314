import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// CFHost, in the words of programs that call it.
@Suite(.timeLimit(.minutes(2)), .leavesNothing) struct HostTests {
    /// Notes the thread's mode, what was looked up, and the error.
    private static let note: CFHostClientCallBack = { host, info, error, context in
        let mode = CFRunLoopCopyCurrentMode(CFRunLoopGetCurrent()).rawValue
        let isResolved = CFHostGetAddressing(host, nil) != nil
        ContextNotes.of(context)?.log.note(
            "\(mode) \(info.rawValue) \(error?.pointee.domain ?? -1) \(error?.pointee.error ?? -1) \(isResolved)"
        )
    }

    private static func setClient(_ host: CFHost, _ notes: ContextNotes) {
        var context = CFHostClientContext(
            version: 0, info: notes.info, retain: ContextNotes.retain, release: ContextNotes.release,
            copyDescription: nil)
        #expect(CFHostSetClient(host, note, &context))
    }

    /// A host whose addresses are being looked up, in the default mode of this thread's loop.
    private static func localhost(_ notes: ContextNotes) -> CFHost {
        let host = CFHostCreateWithName(nil, "localhost").takeRetainedValue()
        setClient(host, notes)
        CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), .defaultMode)
        CFHostStartInfoResolution(host, .addresses, nil)
        return host
    }

    /// As it stands in many programs.
    private static func addresses(of name: String) -> [String] {
        var found: [String] = []
        let host = CFHostCreateWithName(nil, name as CFString).takeRetainedValue()
        CFHostStartInfoResolution(host, .addresses, nil)
        var success: DarwinBoolean = false
        if let addresses = CFHostGetAddressing(host, &success)?.takeUnretainedValue() as NSArray? {
            for case let theAddress as NSData in addresses {
                var hostname = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                if getnameinfo(
                    theAddress.bytes.assumingMemoryBound(to: sockaddr.self), socklen_t(theAddress.length),
                    &hostname, socklen_t(hostname.count), nil, 0, NI_NUMERICHOST) == 0
                {
                    found.append(hostname.withUnsafeBufferPointer { String(cString: $0.baseAddress!) })
                }
            }
        }
        #expect(success.boolValue == !found.isEmpty)
        return found
    }

    @Test func `CS-19 a host that is not scheduled is looked up while its caller waits`() throws {
        #expect(Self.addresses(of: "127.0.0.1") == ["127.0.0.1"])
        #expect(Self.addresses(of: "localhost") == ["127.0.0.1", "::1"])
        #expect(Self.addresses(of: "").isEmpty)
        var error = CFStreamError()
        let nowhere = CFHostCreateWithName(nil, "").takeRetainedValue()
        #expect(!CFHostStartInfoResolution(nowhere, .addresses, &error))
        #expect(error.domain == CFIndex(kCFStreamErrorDomainNetDB) && error.error == EAI_NONAME)
        #expect(!CFHostStartInfoResolution(nowhere, .reachability, &error))
        #expect(error.domain == kCFStreamErrorDomainPOSIX && error.error == EOPNOTSUPP)
    }

    @Test func `CS-19 this machine's own name has the addresses that another program finds`() throws {
        let name = ProcessInfo.processInfo.hostName
        let script = """
            import socket, sys
            try: print(*sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], None)}))
            except OSError: print()
            """
        let expected = try TestServerProcess.run(["python3", "-c", script, name])
        let found = name == "localhost" ? [] : Self.addresses(of: name)
        #expect(name == "localhost" || found.sorted().joined(separator: " ") == expected)
    }

    @Test func `CS-19 a scheduled host calls its client in the modes of its schedule`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let mine = CFRunLoopMode("mine")
            for name in ["localhost", ""] {
                let host = CFHostCreateWithName(nil, name as CFString).takeRetainedValue()
                Self.setClient(host, notes)
                CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), mine.rawValue)
                // It waits for nothing.
                #expect(CFRunLoopRunInMode(mine, 0, false) == .finished)
                var error = CFStreamError(domain: 7, error: 7)
                #expect(CFHostStartInfoResolution(host, .addresses, &error))
                #expect(error == CFStreamError())
                #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
                let before = notes.log.entries.count
                #expect(!CFHostStartInfoResolution(host, .addresses, &error) && error.error == EALREADY)
                runLoop(mine) { notes.log.entries.count > before }
                #expect(CFRunLoopRunInMode(mine, 0, false) == .finished)
                CFHostUnscheduleFromRunLoop(host, CFRunLoopGetCurrent(), mine.rawValue)
                CFHostSetClient(host, nil, nil)
            }
        }
        #expect(notes.log.entries == ["mine 0 0 0 true", "mine 0 12 \(EAI_NONAME) false"])
        #expect(notes.retains == 2 && notes.releases == 2)
    }

    @Test func `CS-19 an answer that comes while the host is scheduled nowhere waits for a mode`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let host = Self.localhost(notes)
            CFHostUnscheduleFromRunLoop(host, CFRunLoopGetCurrent(), .defaultMode)
            #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
            #expect(host.whyNotDelivering.reason == .notScheduled)
            CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), CFRunLoopMode("later"))
            runLoop(CFRunLoopMode("later")) { !notes.log.entries.isEmpty }
            CFHostSetClient(host, nil, nil)
        }
        #expect(notes.log.entries == ["later 0 0 0 true"])
    }

    @Test func `CS-19 a look-up that is given up calls nothing`() throws {
        let notes = ContextNotes()
        try onLoopThread { _ in
            let host = Self.localhost(notes)
            CFHostCancelInfoResolution(host, .names)
            CFHostCancelInfoResolution(host, .addresses)
            #expect(CFRunLoopRunInMode(.defaultMode, 0, false) == .finished)
            // Another one can begin.
            #expect(CFHostStartInfoResolution(host, .addresses, nil))
            runLoop { !notes.log.entries.isEmpty }
            CFHostSetClient(host, nil, nil)
        }
        #expect(notes.log.entries == ["kCFRunLoopDefaultMode 0 0 0 true"])
        #expect(notes.releases == 1)
    }

    @Test func `CS-19 names are looked up by address`() throws {
        let script = "import socket; print(socket.getnameinfo(('127.0.0.1', 0), 0)[0])"
        let expected = try TestServerProcess.run(["python3", "-c", script])
        let host = CFHostCreateWithAddress(nil, loopbackAddress()).takeRetainedValue()
        var isResolved = DarwinBoolean(true)
        #expect(CFHostGetNames(host, &isResolved) == nil && !isResolved.boolValue)
        var error = CFStreamError()
        let isFound = CFHostStartInfoResolution(host, .names, &error)
        // The machine may have no name for it; then Python gives the number.
        #expect(isFound || expected == "127.0.0.1")
        if isFound {
            let copy = CFHostCreateCopy(nil, host).takeRetainedValue()
            #expect(CFHostGetNames(copy, &isResolved)?.takeUnretainedValue() as? [String] == [expected])
            #expect(isResolved.boolValue)
        }
        let bad = CFHostCreateWithAddress(nil, NSData()).takeRetainedValue()
        #expect(!CFHostStartInfoResolution(bad, .names, &error) && error.error != 0)
    }
}

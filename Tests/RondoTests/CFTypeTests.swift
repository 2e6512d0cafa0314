// Core Foundation's types and constants as programs for Apple's systems spell them: that such a line compiles is the
// first half of each test.

import Rondo
import RondoMutex
import RondoTestSupport
import Testing

struct CFTypeTests {
    @Test func `ST-43 TLS settings are set in each of the spellings that programs have`() throws {
        let spellings: [(InputStream) -> Bool] = [
            { $0.setProperty(Self.strings, forKey: kCFStreamPropertySSLSettings as Stream.PropertyKey) },
            {
                $0.setProperty(
                    Self.strings as AnyObject, forKey: .init(kCFStreamPropertySSLSettings as String))
            },
            {
                $0.setProperty(
                    Self.objects, forKey: Stream.PropertyKey(rawValue: kCFStreamPropertySSLSettings))
            },
            { CFReadStreamSetProperty($0, Self.name, Self.objects as CFDictionary) },
            { CFReadStreamSetProperty($0, kCFStreamPropertySSLSettings, Self.strings as CFTypeRef) },
            { CFReadStreamSetProperty($0, .settings, Self.objects as CFDictionary) },
        ]
        for (index, spelling) in spellings.enumerated() {
            let (input, output) = Self.pair()
            #expect(spelling(input), "\(index)")
            let settings = output.property(forKey: .tlsSettingsKey) as? TLSSettings
            #expect(
                settings?.serverName == "example.com"
                    && settings?.verification == TLSSettings.Verification.none, "\(index)")
        }
    }

    private static let name = CFStreamPropertyKey(rawValue: kCFStreamPropertySSLSettings)
    private static var strings: [String: Any] {
        [
            kCFStreamSSLPeerName as String: "example.com",
            kCFStreamSSLValidatesCertificateChain as String: false,
        ]
    }
    private static var objects: [NSObject: NSObject] {
        [
            kCFStreamSSLPeerName: "example.com" as NSString,
            kCFStreamSSLValidatesCertificateChain: kCFBooleanFalse,
        ]
    }

    private static func pair() -> (InputStream, OutputStream) {
        var read: Unmanaged<CFReadStream>?
        var write: Unmanaged<CFWriteStream>?
        let host = "localhost"
        CFStreamCreatePairWithSocketToHost(nil, host as CFString, 1, &read, &write)
        return (read!.takeRetainedValue(), write!.takeRetainedValue())
    }

    @Test func `ST-41 a security level can be set as a string, a name and a value`() {
        let level = StreamSocketSecurityLevel.negotiatedSSL
        let spellings: [(OutputStream) -> Bool] = [
            { $0.setProperty(level, forKey: .socketSecurityLevelKey) },
            { $0.setProperty(level.rawValue, forKey: .socketSecurityLevelKey) },
            { $0.setProperty(level as AnyObject, forKey: .socketSecurityLevelKey) },
            {
                CFWriteStreamSetProperty(
                    $0, CFStreamPropertyKey(rawValue: kCFStreamPropertySocketSecurityLevel),
                    kCFStreamSocketSecurityLevelNegotiatedSSL)
            },
        ]
        for (index, spelling) in spellings.enumerated() {
            let (input, output) = Self.pair()
            #expect(spelling(output), "\(index)")
            #expect(input.property(forKey: .socketSecurityLevelKey) as? String == level.rawValue, "\(index)")
        }
    }

    @Test func `ST-33 a property's value need not be an object`() {
        let (input, output) = Self.pair()
        #expect(input.setProperty(false, forKey: .shouldCloseNativeSocketKey))
        #expect(output.property(forKey: .shouldCloseNativeSocketKey) as? Bool == false)
        #expect(CFReadStreamCopyProperty(input, .shouldCloseNativeSocketKey) as? Bool == false)
        #expect(!input.setProperty(1, forKey: Stream.PropertyKey("unknown")))
    }

    @Test func `the key of a property converts to Core Foundation's string and back`() {
        let key = kCFStreamPropertySocketRemoteHostName as Stream.PropertyKey
        #expect(key == .socketRemoteHostNameKey)
        #expect(key as CFString == kCFStreamPropertySocketRemoteHostName)
        let some: Any = kCFStreamPropertySSLSettings
        #expect(some as? Stream.PropertyKey == .sslSettingsKey)
    }

    @Test func `ST-33 the keys of Core Foundation's properties are members of their type`() {
        let keys: [(CFStreamPropertyKey, CFString)] = [
            (.appendToFile, kCFStreamPropertyAppendToFile),
            (.fileCurrentOffset, kCFStreamPropertyFileCurrentOffset),
            (.dataWritten, kCFStreamPropertyDataWritten),
            (.socketNativeHandle, kCFStreamPropertySocketNativeHandle),
            (.socketRemoteHostName, kCFStreamPropertySocketRemoteHostName),
            (.socketRemotePortNumber, kCFStreamPropertySocketRemotePortNumber),
        ]
        for (key, name) in keys { #expect(key.rawValue == name as String) }
        let (input, output) = Self.pair()
        #expect(CFReadStreamCopyProperty(input, CFStreamPropertyKey.socketRemotePortNumber) as? Int == 1)
        #expect(CFWriteStreamCopyProperty(output, .socketRemoteHostName) as? String == "localhost")
    }

    @Test
    func `Thread.mainThread, kCFErrorDomainCFNetwork, CFSocketSignature and the reference date exist`() {
        let isMain = Thread.main === Thread.mainThread
        #expect(isMain)
        let error = NSError(domain: kCFErrorDomainCFNetwork as String, code: 2)
        #expect(error.domain == "kCFErrorDomainCFNetwork")
        let signature = CFSocketSignature()
        #expect(signature.protocolFamily == 0 && signature.socketType == 0 && signature.protocol == 0)
        #expect(signature.address == nil)
        let start = Date(timeIntervalSince1970: 0).timeIntervalSinceReferenceDate
        #expect(start + kCFAbsoluteTimeIntervalSince1970 == 0)
    }

    @Test func `addingPercentEscapes escapes a percent sign and what cannot stand in a URL`() {
        #expect("a #%[]é~".addingPercentEscapes(using: .utf8) == "a%20%23%25%5B%5D%C3%A9~")
    }

    @Test func `RL-7 a mode by the name that Core Foundation's string holds`() throws {
        let name = "org.example.mode"
        #expect(CFRunLoopMode(name as CFString) == RunLoop.Mode(name))
        #expect(CFRunLoopMode(rawValue: name as CFString) == RunLoop.Mode(rawValue: name))
    }

    @Test func `NQ-16 the mask of what is taken out may be a number`() throws {
        let posted = try onLoopThread { _ in
            let (kept, taken) = (Notification.Name("kept"), Notification.Name("taken"))
            let count = Mutex<[Notification.Name]>([])
            let observers = [kept, taken].map { name in
                NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
                    count.withLock { $0.append(name) }
                }
            }
            defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
            let queue = NotificationQueue.default
            for name in [kept, taken] { queue.enqueue(Notification(name: name), postingStyle: .asap) }
            let mask = Int(NotificationQueue.NotificationCoalescing.onName.rawValue)
            queue.dequeueNotifications(matching: Notification(name: taken), coalesceMask: mask)
            _ = RunLoop.current.run(in: .default, for: 0, returnAfterSourceHandled: false)
            RunLoop.current.perform {}
            _ = RunLoop.current.run(in: .default, for: 0, returnAfterSourceHandled: false)
            return count.withLock { $0.map(\.rawValue) }
        }
        #expect(posted == ["kept"])
    }

    @Test
    func `CFDataCreateWithBytesNoCopy copies the caller's bytes, and takes over bytes handed to it`() throws {
        let bytes = malloc(3)!.assumingMemoryBound(to: UInt8.self)
        for index in 0..<3 { bytes[index] = UInt8(index) }
        let kept = CFDataCreateWithBytesNoCopy(kCFAllocatorDefault, bytes, 3, kCFAllocatorNull)
        bytes[0] = 9
        #expect(kept == Data([0, 1, 2]) as CFData)
        let handedOver = CFDataCreateWithBytesNoCopy(nil, bytes, 3, kCFAllocatorDefault)
        #expect(CFDataGetBytePtr(handedOver) == UnsafePointer(bytes))
        #expect(handedOver == Data([9, 1, 2]) as CFData)
        #expect(CFDataCreateWithBytesNoCopy(nil, nil, 0, nil) == nil)
    }

    @Test func `a pool of Apple's returns what its body does, and throws what it throws`() throws {
        struct Failure: Error {}
        #expect(autoreleasepool { 1 } == 1)
        #expect(throws: Failure.self) { try autoreleasepool { throw Failure() } }
    }
}

extension CFStreamPropertyKey {
    fileprivate static let settings = CFStreamPropertyKey(kCFStreamPropertySSLSettings)
}

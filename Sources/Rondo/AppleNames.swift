// Core Foundation's names and functions, thin over the Swift API: no logic here.

public typealias CFRunLoop = RondoCore.RunLoop
public typealias CFRunLoopMode = RondoCore.RunLoop.Mode
public typealias CFRunLoopRunResult = RondoCore.RunLoop.RunResult
public typealias CFRunLoopSource = RondoCore.RunLoop.Source
public typealias CFRunLoopObserver = RondoCore.RunLoop.Observer
public typealias CFRunLoopActivity = RondoCore.RunLoop.Activity
public typealias CFRunLoopTimer = RondoCore.Timer
public typealias CFTimeInterval = Double
/// Seconds since the reference date, 1 January 2001.
public typealias CFAbsoluteTime = Double
public typealias CFIndex = Int
public typealias CFOptionFlags = UInt
/// The allocator that functions of Core Foundation take, which has no meaning here: pass
/// `kCFAllocatorDefault`. Only as the deallocator of memory that is handed over does `kCFAllocatorNull` make
/// a difference.
public final class CFAllocator: Sendable {}
public let kCFAllocatorDefault: CFAllocator? = nil
/// As a deallocator: Core Foundation does not free the memory.
public let kCFAllocatorNull: CFAllocator? = CFAllocator()

public let kCFRunLoopDefaultMode = CFRunLoopMode.default
public let kCFRunLoopCommonModes = CFRunLoopMode.common
extension Foundation.RunLoop.Mode {
    /// `.default` and `.common` by the names that `CFRunLoopMode` has on Apple's systems.
    public static let defaultMode = Self.default
    public static let commonModes = Self.common
}

extension RunLoop {
    /// Returns this loop: here both are one class.
    public func getCFRunLoop() -> CFRunLoop { self }
}

public let NSDefaultRunLoopMode = CFRunLoopMode.default
public let NSRunLoopCommonModes = CFRunLoopMode.common
/// The length of a body whose length was not announced.
public let NSURLResponseUnknownLength: Int64 = -1

/// `RunLoop.current`.
@available(*, noasync, message: "A task has no thread of its own.")
public func CFRunLoopGetCurrent() -> CFRunLoop! { .current }

/// `RunLoop.main`.
public func CFRunLoopGetMain() -> CFRunLoop! { .main }

/// Runs the current loop's default mode until it is stopped or empty (rule RL-34). The main loop's is never
/// empty, because it serves the main dispatch queue (rule RL-14).
@available(*, noasync, message: "It blocks the thread.")
public func CFRunLoopRun() {
    _ = RunLoop.current.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
}

/// `RunLoop.run(in:for:returnAfterSourceHandled:)` of the current loop.
@available(*, noasync, message: "It blocks the thread.")
@discardableResult
public func CFRunLoopRunInMode(
    _ mode: CFRunLoopMode, _ seconds: CFTimeInterval, _ returnAfterSourceHandled: Bool
) -> CFRunLoopRunResult {
    RunLoop.current.run(in: mode, for: seconds, returnAfterSourceHandled: returnAfterSourceHandled)
}

public func CFRunLoopStop(_ loop: CFRunLoop?) { loop?.stop() }

public func CFRunLoopWakeUp(_ loop: CFRunLoop?) { loop?.wakeUp() }

public func CFRunLoopIsWaiting(_ loop: CFRunLoop?) -> Bool { loop?.isWaiting ?? false }

public func CFRunLoopCopyCurrentMode(_ loop: CFRunLoop?) -> CFRunLoopMode! { loop?.currentMode }

/// The names of `allModes`: `as! [String]` converts.
public func CFRunLoopCopyAllModes(_ loop: CFRunLoop?) -> CFArray! {
    NSArray(array: (loop?.allModes ?? []).map { $0.rawValue as NSString })
}

public func CFRunLoopAddCommonMode(_ loop: CFRunLoop?, _ mode: CFRunLoopMode) { loop?.addCommonMode(mode) }

/// Queues a block without waking the loop (rule RL-61).
public func CFRunLoopPerformBlock(
    _ loop: CFRunLoop?, _ mode: CFRunLoopMode, _ block: sending @escaping () -> Void
) {
    loop?.performWithoutWaking(inModes: [mode], block: block)
}

/// Queues a block for several modes; Apple's function takes an array of their names.
public func CFRunLoopPerformBlock(
    _ loop: CFRunLoop?, _ modes: [CFRunLoopMode], _ block: sending @escaping () -> Void
) {
    loop?.performWithoutWaking(inModes: modes, block: block)
}

/// Queues a block for a mode given by name, for example `CFRunLoopMode.commonModes.rawValue`.
public func CFRunLoopPerformBlock(
    _ loop: CFRunLoop?, _ mode: String, _ block: sending @escaping () -> Void
) {
    loop?.performWithoutWaking(inModes: [CFRunLoopMode(mode)], block: block)
}

/// Queues a block for the name of a mode, as in `CFRunLoopMode.commonModes.rawValue as CFTypeRef`, or an
/// array of such names.
@_disfavoredOverload
public func CFRunLoopPerformBlock(
    _ loop: CFRunLoop?, _ mode: CFTypeRef!, _ block: sending @escaping () -> Void
) {
    let names = mode as? [String] ?? (mode as? String).map { [$0] } ?? []
    loop?.performWithoutWaking(inModes: names.map { CFRunLoopMode($0) }, block: block)
}

public func CFAbsoluteTimeGetCurrent() -> CFAbsoluteTime { Date().timeIntervalSinceReferenceDate }

/// The seconds from 1 January 1970 to the reference date.
public let kCFAbsoluteTimeIntervalSince1970: CFTimeInterval = 978_307_200

extension Thread {
    /// `mainThread` by the name that it has on Apple's systems. Without it the name means the method
    /// `main()`.
    public static var main: Thread { mainThread }
}

extension String {
    /// This string with every character percent-escaped that cannot stand in a URL.
    public func addingPercentEscapes(using encoding: Encoding) -> String? {
        guard let bytes = data(using: encoding) else { return nil }
        let allowed = Set(
            "!$&'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~".utf8)
        return bytes.reduce(into: "") { text, byte in
            if allowed.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
    }
}

extension NotificationQueue {
    /// Does the same as `dequeueNotifications(matching:coalesceMask:)`, with the mask as a number, which is
    /// how Apple declares it (rule NQ-16).
    @_disfavoredOverload
    public func dequeueNotifications(matching notification: Notification, coalesceMask: Int) {
        dequeueNotifications(
            matching: notification,
            coalesceMask: NotificationCoalescing(rawValue: UInt(bitPattern: coalesceMask)))
    }
}

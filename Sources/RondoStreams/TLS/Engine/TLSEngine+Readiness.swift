internal import RondoCore

// The events that an open connection waits for: TLS may have to write before it can continue reading, and the
// reverse.
extension TLSEngine {
    /// Ends this side's stream: sends close_notify, or has `sendRest()` send it.
    func endWriting() {
        let progress = shutdown()
        guard writing.end != .sent else { return }
        writing.end = progress == .done ? .notOwed : .owed
    }

    /// Whether close_notify must still be sent.
    var owesEnd: Bool { writing.end == .owed }

    /// Whether the last read waits until the socket can be written to.
    var readNeedsWrite: Bool { reading.needsWrite }

    func canRead(_ ready: RunLoop.Source.Interest) -> Bool {
        ready.contains(.read) || (readNeedsWrite && ready.contains(.write))
    }

    func canWrite(_ ready: RunLoop.Source.Interest) -> Bool {
        ready.contains(.write) || (writing.needsRead && ready.contains(.read))
    }

    /// Whether something must be sent before the owner can write.
    var hasToSend: Bool { hasUnsentBytes || owesEnd }

    /// Sends the rest of earlier writes, and close_notify if that is owed.
    ///
    /// - Returns: Whether the owner can write now.
    func sendRest() -> Bool {
        do throws(TLSError) {
            guard try flush() == .done else { return false }
            if owesEnd { endWriting() }
        } catch {
            // The next write throws this error again; until then the owner can still read.
            if owesEnd { writing.end = .notOwed }
        }
        return true
    }

    /// What the socket is to be watched for, if the owner wants `wanted`.
    func interest(for wanted: RunLoop.Source.Interest) -> RunLoop.Source.Interest {
        var interest = wanted
        if writing.needsRead { interest.insert(.read) }
        // What waits for the peer's bytes does not wait for room.
        if hasToSend && !writing.needsRead || readNeedsWrite && wanted.contains(.read) {
            interest.insert(.write)
        }
        return interest
    }
}

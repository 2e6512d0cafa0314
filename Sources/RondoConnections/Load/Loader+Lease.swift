internal import FoundationNetworking
internal import RondoCore
internal import Synchronization

// A place among the connections that may be in use at once. A load has one from the moment it sends until its
// exchange is over, and waits for one like for anything else: in its modes, with its loop free.

extension Loader {
    /// What is sent once there is room.
    struct WaitingForSlot {
        let ticket: Int
        let key: PoolKey
        let request: LoadRequest
        let body: BodyStream?
        let mayReuse: Bool
    }

    /// - Returns: False if the request has to wait for its turn.
    func enterSlot(_ key: PoolKey, _ request: LoadRequest, body: BodyStream?, mayReuse: Bool) -> Bool {
        if slot != nil { return true }
        guard let ticket = ConnectionSlots.shared.enter(key, self) else {
            slot = key
            return true
        }
        madeRare.waitingForSlot = WaitingForSlot(
            ticket: ticket, key: key, request: request, body: body, mayReuse: mayReuse)
        return false
    }

    /// There is room now for the load with `ticket`. Any thread.
    func isAdmitted(with ticket: Int) {
        shared.withLock { $0.admittedTicket = ticket }
        wakeUp()
    }

    /// There may be room now.
    func takeSlot() {
        guard let waiting = waitingForSlot, shared.withLock({ $0.admittedTicket }) == waiting.ticket else {
            return
        }
        rare?.waitingForSlot = nil
        slot = waiting.key
        progressedAt = now
        exchange(waiting.request, body: waiting.body, mayReuse: waiting.mayReuse)
    }

    func leaveSlot() {
        if let waiting = waitingForSlot {
            rare?.waitingForSlot = nil
            // Admitted meanwhile: the place is somebody else's.
            if !ConnectionSlots.shared.withdraw(waiting.ticket) { ConnectionSlots.shared.leave(waiting.key) }
        }
        guard let slot else { return }
        self.slot = nil
        ConnectionSlots.shared.leave(slot)
    }
}

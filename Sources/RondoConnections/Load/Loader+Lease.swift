internal import FoundationNetworking
internal import RondoCore
internal import RondoStreams
internal import Synchronization

// The lease of a connection. A load has one from the moment it sends until its exchange is over, and waits for one like
// for anything else: in its modes, with its loop free.

extension Loader: ConnectionWaiter {
    /// What is sent once there is room.
    struct WaitingForLease {
        let ticket: Int
        let route: Route
        let request: LoadRequest
        let body: BodyStream?
        let mayReuse: Bool
    }

    /// - Returns: False if the request has to wait for its turn.
    func obtainLease(_ route: Route, _ request: LoadRequest, body: BodyStream?, mayReuse: Bool) -> Bool {
        if lease != nil { return true }
        let answer = route.origin.lease(
            route.key, of: leasingLoop, at: onlyCourier, for: self, mayReuse: mayReuse)
        switch answer {
        case .granted(let lease):
            self.lease = lease
            return true
        case .wait(let ticket):
            madeRare.waitingForLease = WaitingForLease(
                ticket: ticket, route: route, request: request, body: body, mayReuse: mayReuse)
            return false
        }
    }

    /// There is room now for the load with `ticket`. Any thread.
    func isAdmitted(with ticket: Int) {
        shared.withLock { $0.admittedTicket = ticket }
        wakeUp()
    }

    /// There may be room now.
    func takeLease() {
        guard let waiting = waitingForLease, shared.withLock({ $0.admittedTicket }) == waiting.ticket else {
            return
        }
        rare?.waitingForLease = nil
        lease = waiting.route.origin.admittedLease(
            waiting.route.key, of: leasingLoop, at: onlyCourier, mayReuse: waiting.mayReuse)
        progressedAt = now
        exchange(waiting.request, body: waiting.body, mayReuse: waiting.mayReuse)
    }

    /// Gives back what no exchange has.
    func endLease() {
        if let waiting = waitingForLease {
            rare?.waitingForLease = nil
            waiting.route.origin.withdraw(waiting.ticket)
        }
        lease.take()?.end()
    }

    /// Whose idle connections are used first.
    private var leasingLoop: RunLoop { places[0].loop }

    /// Where an idle connection may be registered already.
    var onlyCourier: StreamCourier? { places.count == 1 ? seat?.courier : nil }
}

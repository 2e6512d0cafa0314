package import RondoHTTP
package import RondoStreams

/// Another protocol to which a request asks the server to switch (RFC 9110 §7.8); after a 101 it gets the
/// connection.
///
/// Used inside the gate of the load, in the modes of the load; calls to the program are made through
/// `UpgradeOwner`.
package protocol Upgrade: AnyObject, Sendable {
    /// Whether only a response that switches to the protocol is accepted: any other fails the load, and only
    /// the server can answer. If false, the client decides about a 101, and other responses are delivered as
    /// usual.
    var isRequired: Bool { get }

    /// Adds the fields that ask for the protocol to a request. They are different for each request of the
    /// load, also for one that is sent again after a redirect or a challenge.
    func addFields(to fields: inout HeaderFields)

    /// The sentence that says why the final response is not acceptable; nil if the connection is handed over.
    ///
    /// - Parameter load: The load, which the upgrade retains until the protocol ends.
    func refusal(of head: ResponseHead, for load: any UpgradeOwner) -> String?

    /// Takes the connection over, until the end of the load closes it.
    ///
    /// - Parameter received: The bytes that came after the response's head.
    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer)

    /// Serves the protocol, in a pass after `UpgradeOwner.wakeUp()`.
    func serve()

    func becameReadable()
    func becameWritable()
    func failed(_ error: ChannelError)

    /// Stops reading and delivering until `startReading()`, because the program has not handled enough of
    /// what it got.
    func stopReading()
    /// Undoes `stopReading()`, and does nothing if that was not called.
    func startReading()
}

extension Upgrade {
    package var isRequired: Bool { true }
}

/// The load that an upgrade belongs to.
package protocol UpgradeOwner: AnyObject, Sendable {
    /// Makes `Upgrade.serve()` be called in a pass of a scheduled mode. Any thread may call it.
    func wakeUp()

    /// False if the load is suspended, or was ended by its client: then nothing more is sent. A call may
    /// change it.
    var maySend: Bool { get }

    /// Makes `call` in order with the other calls of the load, and on the same thread or queue. Call it
    /// inside the gate.
    ///
    /// - Parameters:
    ///   - name: The name of the call in traces.
    ///   - size: The number of bytes that the call retains.
    func call(_ name: String, size: Int, _ call: @escaping @Sendable () -> Void)

    /// Ends the load; nil for success. Call it inside the gate.
    func endUpgrade(_ failure: LoadFailure?)

    /// A timer whose time passes while the modes of the load run.
    func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer
}

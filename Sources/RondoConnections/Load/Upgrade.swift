package import RondoHTTP
package import RondoStreams

/// Another protocol that a load asks its server for (RFC 9110 §7.8), and that goes on over the connection after a 101.
///
/// All of it is used inside the gate of the load, in the modes of the load; calls to the program go by `UpgradeOwner`.
package protocol Upgrade: AnyObject, Sendable {
    /// A response that does not bring it fails the load; nothing but the server can answer. Otherwise the client says what
    /// becomes of a 101, and other responses are as ever.
    var isRequired: Bool { get }

    /// Puts the fields by which it asks into a request. Each request of the load has fields of its own, one that is sent
    /// again after a redirect or a challenge too.
    func addFields(to fields: inout HeaderFields)

    /// Why the final response is not what was asked for, as a sentence; nil: the connection is handed over.
    ///
    /// - Parameter owner: To be released when the load ends.
    func refusal(of head: ResponseHead, for owner: any UpgradeOwner) -> String?

    /// The connection is the protocol's until the load ends, which closes it.
    ///
    /// - Parameter received: What came behind the response's head.
    func begin(_ channel: SocketChannel, received: UnsafeRawBufferPointer)

    /// In a pass after `UpgradeOwner.wakeUp()`.
    func serve()

    func readable()
    func writable()
    func failed(_ error: ChannelError)

    /// The program lags behind: nothing is read, and nothing handed over, until `resume()`.
    func pause()
    func resume()
}

extension Upgrade {
    package var isRequired: Bool { true }
}

/// What an upgrade wants of the load that it belongs to.
package protocol UpgradeOwner: AnyObject, Sendable {
    /// Has `Upgrade.serve()` called in a pass of a scheduled mode. Any thread.
    func wakeUp()

    /// Has `call` made where the calls of the load come, in order with them. Inside the gate.
    ///
    /// - Parameters:
    ///   - name: What traces call it.
    ///   - size: Bytes that it keeps from being forgotten.
    func call(_ name: String, size: Int, _ call: @escaping @Sendable () -> Void)

    /// The load is over: nil for success. Inside the gate.
    func endUpgrade(_ failure: LoadFailure?)

    /// A timer whose time passes while the modes of the load run.
    func upgradeTimer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer
}

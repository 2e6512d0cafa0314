internal import RondoCore

// TLS begins: on a fresh connection, or on one that has been used without it.
extension SocketChannel {
    /// Secures the open connection from here on (STARTTLS, rule ST-42). It is not open meanwhile; the events
    /// are `secured` or `failed`, in a later pass. Where the connection is still being made the settings take
    /// effect as if they had been there from the start.
    ///
    /// - Parameter received: What the owner has read already and not used: it belongs to TLS now. So nothing
    ///   that was said before in plain text can be taken for something said in confidence.
    /// - Returns: False if it is secured already, or closed.
    package func secure(_ settings: TLSSettings?, received: [UInt8] = []) -> Bool {
        switch phase {
        case .created, .starting, .resolving, .connecting, .standing, .negotiating:
            configuration.tls = settings
            return true
        case .open(let connected, nil):
            guard let settings else { return true }
            phase = .upgrading(connected, settings, received: received)
            interest.set([], of: connected.source)
            turns?.signalAndWakeUp()
            return true
        case .upgrading, .securing, .open, .closed:
            return false
        }
    }

    func beginSecuring(_ connected: Connected, _ settings: TLSSettings, received: [UInt8]) {
        let host = Self.withoutBrackets(configuration.host)
        do throws(TLSError) {
            let engine = try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: connected.socket.descriptor,
                hostName: host, received: received)
            phase = .securing(connected, engine)
            handshake(connected, engine)
        } catch {
            fail(.tls(error.naming(host: host)))
        }
    }

    func handshake(_ connected: Connected, _ engine: TLSEngine) {
        do throws(TLSError) {
            switch try engine.handshake() {
            case .wantsRead: interest.set(.read, of: connected.source)
            case .wantsWrite: interest.set(.write, of: connected.source)
            case .done: isUsable(connected, engine)
            }
        } catch {
            fail(.tls(error))
        }
    }
}

/// The handlers by which a channel asks its owner about the peer.
///
/// Boxed, because most channels have none, and two closures are larger than the rest of a channel.
package struct ChannelHandlers {
    private final class Box {
        var onTrust: ((TLSTrust) -> Void)?
        var onIdentityRequest: ((TLSIdentityRequest) -> Void)?
    }

    private var box: Box?

    /// Called with the question whether the peer is trusted; if nil, `TLSSettings.trustHandler` is called
    /// instead.
    package var onTrust: ((TLSTrust) -> Void)? {
        get { box?.onTrust }
        set {
            if box == nil, newValue == nil { return }
            boxMadeOnDemand.onTrust = newValue
        }
    }

    /// Called with the question for an identity; if nil, `TLSSettings.identityHandler` is called instead.
    package var onIdentityRequest: ((TLSIdentityRequest) -> Void)? {
        get { box?.onIdentityRequest }
        set {
            if box == nil, newValue == nil { return }
            boxMadeOnDemand.onIdentityRequest = newValue
        }
    }

    private var boxMadeOnDemand: Box {
        mutating get {
            let made = box ?? Box()
            box = made
            return made
        }
    }

    /// Frees the box if no handler is set.
    mutating func shrink() {
        if let box, box.onTrust == nil, box.onIdentityRequest == nil { self.box = nil }
    }
}

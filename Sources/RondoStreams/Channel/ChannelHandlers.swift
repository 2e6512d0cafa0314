/// The handlers of a channel that asks its owner about trust or an identity.
///
/// Boxed, because most channels have none, and two closures are larger than the rest of a channel.
struct ChannelHandlers {
    private final class Box {
        var onTrust: ((TLSTrust) -> Void)?
        var onIdentityRequest: ((TLSIdentityRequest) -> Void)?
    }

    private var box: Box?

    var onTrust: ((TLSTrust) -> Void)? {
        get { box?.onTrust }
        set {
            if box == nil, newValue == nil { return }
            madeBox.onTrust = newValue
        }
    }

    var onIdentityRequest: ((TLSIdentityRequest) -> Void)? {
        get { box?.onIdentityRequest }
        set {
            if box == nil, newValue == nil { return }
            madeBox.onIdentityRequest = newValue
        }
    }

    private var madeBox: Box {
        mutating get {
            let made = box ?? Box()
            box = made
            return made
        }
    }

    /// Gives the memory back, if there is no handler any more.
    mutating func shrink() {
        if let box, box.onTrust == nil, box.onIdentityRequest == nil { self.box = nil }
    }
}

internal import RondoCore

extension DelegateMethodCheck {
    /// Foundation gives the only method of `StreamDelegate` a default implementation, so that a class may
    /// conform without it.
    static let streams = DelegateMethodCheck(protocols: [
        DelegateProtocol("StreamDelegate", methods: ["stream(_: Stream, handle: Event)"]) {
            $0 is any StreamDelegate.Type
        }
    ])
}

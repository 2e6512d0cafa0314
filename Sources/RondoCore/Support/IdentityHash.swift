// Sources, timers and observers enter and leave the sets of their modes all the time: a connection does so for
// every request. The standard library's hash is made to withstand keys that an attacker has chosen, and takes as
// long as all the rest of it; the address of an object is chosen by nobody.

extension Hashable where Self: AnyObject {
    /// A hash of the object's address for `Hashable._rawHashValue(seed:)`, which sets call.
    @inline(__always)
    func identityHash(seed: Int) -> Int {
        let bits = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) ^ UInt(bitPattern: seed)
        // Multiplied by 2^64 / φ the low bits, where addresses are all alike, reach the high ones (Knuth, vol. 3,
        // 6.4); a set looks at the low ones.
        let mixed = bits &* 0x9E37_79B9_7F4A_7C15
        return Int(bitPattern: mixed ^ mixed >> 32)
    }
}

// Points of the scaling curves: the cost of one item as their number grows.
import CBenchmark
import Glibc

/// How many items a point of a curve takes, at least.
public let curveItems = 200_000

/// How many requests a point of the curve of connections takes.
public func curveRequests(_ n: Int) -> Int { max(20_000, 2 * n) }

public func reportCurve(_ curve: String, _ n: Int, _ peer: String, items: Int, wall: Double, cpu: Double) {
    report("curve.\(curve).\(n)", peer, cpu * 1e9 / Double(items), "cpu-ns/item", wall: wall, cpu: cpu)
}

/// `n` descriptors that count tokens: reading takes one, writing adds one.
public func tokenDescriptors(_ n: Int) -> [Int32] {
    (0..<n).map { _ in
        let descriptor = bench_token_descriptor()
        precondition(descriptor >= 0, "out of descriptors")
        return descriptor
    }
}

@inline(__always) public func takeToken(_ descriptor: Int32) -> Bool {
    var value: UInt64 = 0
    return read(descriptor, &value, 8) == 8
}

@inline(__always) public func putToken(_ descriptor: Int32) {
    var one: UInt64 = 1
    precondition(write(descriptor, &one, 8) == 8)
}

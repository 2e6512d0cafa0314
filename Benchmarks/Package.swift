// swift-tools-version: 6.2
// A package of its own, so that what the peers depend on reaches no user of Rondo.

import PackageDescription

let swift5: [SwiftSetting] = [.swiftLanguageMode(.v5)]

/// NIO and AsyncHTTPClient take minutes to build: `make bench PEERS=few` leaves them out.
let hasAllPeers = Context.environment["RONDO_BENCH_PEERS"] != "few"

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "Rondo", path: "..")],
    targets: [
        .target(name: "CBenchmark"),
        .target(name: "BenchmarkSupport", dependencies: ["CBenchmark"], swiftSettings: swift5),
        .executableTarget(
            name: "bench-rondo",
            dependencies: ["BenchmarkSupport", .product(name: "Rondo", package: "Rondo")]),
        .executableTarget(
            name: "bench-guard",
            dependencies: ["BenchmarkSupport", "CBenchmark", .product(name: "Rondo", package: "Rondo")],
            // What valgrind 3.19 cannot read it refuses to run; the symbols stay.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--strip-debug"])]),
        .executableTarget(
            name: "bench-foundation", dependencies: ["BenchmarkSupport"], swiftSettings: swift5),
        .executableTarget(name: "bench-dispatch", dependencies: ["BenchmarkSupport"], swiftSettings: swift5),
        .executableTarget(
            name: "bench-urlsession", dependencies: ["BenchmarkSupport"], swiftSettings: swift5),
    ]
)

if hasAllPeers {
    package.dependencies += [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ]
    let nio: [Target.Dependency] = [
        "BenchmarkSupport", .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
    ]
    package.targets += [
        .executableTarget(name: "bench-nio", dependencies: nio, swiftSettings: swift5),
        .executableTarget(
            name: "bench-async-http-client",
            dependencies: nio + [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ], swiftSettings: swift5),
    ]
}

// swift-tools-version: 6.2

import Foundation
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    // A C type cannot slip into a `package` or `public` signature.
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
    name: "Rondo",
    products: [
        .library(name: "Rondo", targets: ["Rondo"]),
        // For the tests of programs that use Rondo: a clock that they can hold.
        .library(name: "RondoTesting", targets: ["RondoTesting"]),
        // The same for tests by XCTest, which it links.
        .library(name: "RondoXCTest", targets: ["RondoXCTest"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0")
    ],
    targets: [
        // One system library each.
        .systemLibrary(name: "CRondoEv", providers: [.apt(["libev-dev"])]),
        .systemLibrary(name: "CRondoOpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CRondoZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CRondoSQLite", providers: [.apt(["libsqlite3-dev"])]),

        // The functions of libraries that are looked up when they are first used. (Not by traits: the package manager
        // names several in changing order, and a user's every new file would compile all of Rondo again.)
        .systemLibrary(name: "CRondoLibraries"),
        .target(name: "RondoLibraries", dependencies: ["CRondoLibraries"], swiftSettings: settings),

        // Constructors, which run before `main`.
        .target(name: "CRondoStart"),

        // C for what Swift lacks: starting child processes, system calls without a function in glibc or in its module,
        // and a number for each thread.
        .target(name: "CRondoSystem"),

        // The lock of all layers, in which ThreadSanitizer's stands in for Swift's.
        .target(name: "RondoMutex", swiftSettings: settings),
        // The layers, lowest first; arrows point down only.
        .target(
            name: "RondoCore",
            dependencies: ["RondoMutex", "CRondoEv", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .target(
            name: "RondoStreams",
            dependencies: ["RondoMutex", "RondoLibraries", "RondoCore", "CRondoOpenSSL", "CRondoSystem"],
            swiftSettings: settings),
        .target(
            name: "RondoHTTP",
            dependencies: ["RondoMutex", "RondoLibraries", "CRondoOpenSSL", "CRondoZlib", "CRondoLibraries"],
            swiftSettings: settings),
        .target(
            name: "RondoConnections",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoStreams", "RondoHTTP", "CRondoSQLite", "CRondoStart",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .target(
            name: "RondoSessions",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoStreams", "RondoConnections",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        // The recorder of what run loops do.
        .target(
            name: "RondoTrace",
            dependencies: ["RondoMutex", "RondoCore", "CRondoStart", "CRondoSystem"],
            swiftSettings: settings),
        // Child processes.
        .target(
            name: "RondoSystem",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoStreams", "CRondoSystem",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .target(
            name: "Rondo",
            dependencies: [
                "RondoCore", "RondoStreams", "RondoSystem", "RondoHTTP", "RondoConnections", "RondoSessions",
                "RondoTrace",
            ],
            swiftSettings: settings),
        .target(
            name: "RondoTesting",
            dependencies: ["RondoMutex", "RondoCore", "RondoSystem"],
            swiftSettings: settings),
        .target(
            name: "RondoXCTest",
            dependencies: ["RondoMutex", "RondoCore", "RondoTesting"],
            swiftSettings: settings),
        .target(
            name: "RondoLab",
            dependencies: ["RondoMutex", "Rondo", "RondoTrace"],
            swiftSettings: settings),

        // Tests.
        .target(
            name: "RondoTestSupport",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoProbeSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/RondoTestSupport",
            swiftSettings: settings),
        .testTarget(
            name: "RondoCoreTests",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoTesting", "RondoTestSupport", "RondoProbeSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoStreamsTests",
            dependencies: ["RondoMutex", "RondoStreams", "RondoTesting", "RondoTestSupport"],
            swiftSettings: settings),
        // The child that tests of children start.
        .executableTarget(
            name: "RondoChildProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoChildProbe",
            swiftSettings: settings),
        .testTarget(
            name: "RondoSystemTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoSystem", "RondoTesting", "RondoTestSupport", "RondoChildProbe",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoHTTPTests",
            dependencies: ["RondoHTTP", "CRondoZlib"],
            swiftSettings: settings),
        .testTarget(
            name: "RondoConnectionsTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoConnections", "RondoHTTP", "RondoStreams", "RondoTesting",
                "RondoTestSupport", "RondoProbeSupport", "CRondoSQLite",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoSessionsTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoSessions", "RondoConnections", "RondoHTTP", "RondoTesting",
                "RondoTestSupport", "RondoTaskProbe", "RondoProbeSupport",
            ],
            swiftSettings: settings),
        // Shared by the sanitizers' programs.
        .target(
            name: "RondoProbeSupport", dependencies: ["RondoCore"], path: "Tests/RondoProbeSupport",
            swiftSettings: settings),
        // Tasks of a session under stress, for the sanitizers.
        .executableTarget(
            name: "RondoTaskProbe",
            dependencies: ["RondoMutex", "Rondo", "RondoCore", "RondoProbeSupport"],
            path: "Tests/RondoTaskProbe",
            swiftSettings: settings),
        .testTarget(
            name: "RondoTestingTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoTesting", "RondoCore", "RondoTestSupport", "RondoMainLoopProbe",
            ],
            swiftSettings: settings),
        // Sockets, descriptors, ports and streams of handles under stress, for the sanitizers.
        .executableTarget(
            name: "RondoSocketProbe",
            dependencies: ["RondoMutex", "Rondo", "RondoCore", "RondoStreams", "RondoProbeSupport"],
            path: "Tests/RondoSocketProbe",
            swiftSettings: settings),
        // Programs as they were written for Apple's systems, by Apple's names.
        .testTarget(
            name: "RondoApplePatternsTests",
            dependencies: ["RondoMutex", "Rondo", "RondoTestSupport", "CRondoEv"],
            swiftSettings: settings),
        // Scenarios for the main thread, which no test has, one for each argument.
        .executableTarget(
            name: "RondoMainLoopProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoMainLoopProbe",
            swiftSettings: settings),
        // A program whose main is asynchronous.
        .executableTarget(
            name: "RondoAsyncMainProbe", dependencies: ["Rondo"], path: "Tests/RondoAsyncMainProbe",
            swiftSettings: settings),
        // The bridges to Foundation's run loop, which need the main thread too, and a package that knows only that loop.
        .target(name: "RondoForeignPackage", path: "Tests/RondoForeignPackage", swiftSettings: settings),
        .executableTarget(
            name: "RondoBridgeProbe",
            dependencies: ["RondoMutex", "Rondo", "RondoForeignPackage", "RondoTestSupport"],
            path: "Tests/RondoBridgeProbe",
            swiftSettings: settings),
        // A program that tests kill while it stores.
        .executableTarget(
            name: "RondoStorageProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoStorageProbe",
            swiftSettings: settings),
        // Scenarios in which system calls fail on purpose (Tests/RondoFaults), one for each argument.
        .executableTarget(
            name: "RondoFaultProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoFaultProbe",
            swiftSettings: settings),
        .testTarget(
            name: "RondoTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoTestSupport", "RondoMainLoopProbe", "RondoAsyncMainProbe",
                "RondoStorageProbe", "RondoFaultProbe",
            ],
            swiftSettings: settings),
        // The parts of Foundation that use its own run loop, where a program fails without an error.
        .testTarget(
            name: "RondoTrapTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoTestSupport", "RondoMainLoopProbe", "RondoBridgeProbe",
                "RondoSocketProbe",
            ],
            exclude: ["Refused"], swiftSettings: settings),
        // One target for each way in which Rondo's names have to resolve.
        .testTarget(name: "RondoTestsImportClass", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsQualified", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsModuleSelector", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsXCTest", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(
            name: "RondoXCTestTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoXCTest", .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
    ]
)

// The command and its tests are there in a clone, and not where another package depends on this one: that package would
// fetch the dependency of the command too, since the package manager prunes only what traits guard. To resolve
// dependencies it reads manifests out of their repositories, as if those were the root folder; later it reads them in
// its folder of checkouts, which has that of the repositories beside it, or in that of a registry's downloads. Both
// times it has to find the same dependencies.
let folder = Context.packageDirectory
let isCheckout =
    folder.split(separator: "/").dropLast().last == "checkouts"
    && FileManager.default.fileExists(atPath: folder + "/../../repositories")
let isDependency = folder == "/" || isCheckout || folder.contains("/registry/downloads/")

if !isDependency {
    package.dependencies += [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0")
    ]
    package.products += [.executable(name: "rondo", targets: ["RondoCommand"])]
    package.targets += [
        .executableTarget(
            name: "RondoCommand",
            dependencies: [
                "RondoMutex", "Rondo", "RondoHTTP", "RondoStreams", "RondoConnections", "RondoLab",
                "RondoTrace",
                "CRondoOpenSSL", "CRondoSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoCommandTests",
            dependencies: [
                "RondoCommand", "RondoHTTP", "RondoStreams", "RondoConnections", "RondoLab", "Rondo",
                "RondoTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoLabTests",
            dependencies: [
                "RondoMutex", "RondoLab", "RondoTrace", "RondoCommand", "Rondo", "RondoTestSupport",
                "RondoMainLoopProbe",
            ],
            swiftSettings: settings),
    ]
}

// swift-tools-version: 6.2

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
        .executable(name: "rondo", targets: ["RondoCommand"]),
    ],
    traits: [
        .default(enabledTraits: ["Brotli", "Zstd", "PublicSuffix"]),
        .trait(name: "Brotli", description: "Responses in the content coding br (libbrotli)."),
        .trait(name: "Zstd", description: "Responses in the content coding zstd (libzstd)."),
        .trait(name: "PublicSuffix", description: "No cookies or wildcards for co.uk and its kin (libpsl)."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    ],
    targets: [
        // One system library each.
        .systemLibrary(name: "CEv", providers: [.apt(["libev-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CBrotli", providers: [.apt(["libbrotli-dev"])]),
        .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CPsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),

        // Constructors, which run before `main`.
        .target(name: "CStart"),

        // The lock of all layers, in which ThreadSanitizer's stands in for Swift's.
        .target(name: "RondoMutex", swiftSettings: settings),
        // The layers, lowest first; arrows point down only.
        .target(
            name: "RondoCore",
            dependencies: ["RondoMutex", "CEv", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .target(
            name: "RondoStreams",
            dependencies: [
                "RondoMutex", "RondoCore", "COpenSSL",
                .target(name: "CPsl", condition: .when(traits: ["PublicSuffix"])),
            ],
            swiftSettings: settings),
        .target(
            name: "RondoHTTP",
            dependencies: [
                "RondoMutex", "COpenSSL", "CZlib",
                .target(name: "CBrotli", condition: .when(traits: ["Brotli"])),
                .target(name: "CZstd", condition: .when(traits: ["Zstd"])),
                .target(name: "CPsl", condition: .when(traits: ["PublicSuffix"])),
            ],
            swiftSettings: settings),
        .target(
            name: "RondoConnections",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoStreams", "RondoHTTP", "CSQLite", "CStart",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        // The recorder of what run loops do.
        .target(
            name: "RondoTrace",
            dependencies: ["RondoMutex", "RondoCore", "CStart"],
            swiftSettings: settings),
        .target(
            name: "Rondo",
            dependencies: ["RondoCore", "RondoStreams", "RondoHTTP", "RondoConnections", "RondoTrace"],
            swiftSettings: settings),
        .target(
            name: "RondoTesting",
            dependencies: ["RondoMutex", "RondoCore"],
            swiftSettings: settings),
        .target(
            name: "RondoLab",
            dependencies: ["RondoMutex", "Rondo", "RondoTrace"],
            swiftSettings: settings),
        .executableTarget(
            name: "RondoCommand",
            dependencies: [
                "RondoMutex", "Rondo", "RondoLab", "RondoTrace", "COpenSSL",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),

        // Tests.
        .target(
            name: "RondoTestSupport",
            dependencies: ["RondoMutex", "RondoCore"],
            path: "Tests/RondoTestSupport",
            swiftSettings: settings),
        .testTarget(
            name: "RondoCoreTests",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoTesting", "RondoTestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoStreamsTests",
            dependencies: ["RondoMutex", "RondoStreams", "RondoTesting", "RondoTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "RondoHTTPTests",
            dependencies: ["RondoHTTP", "CZlib"],
            swiftSettings: settings),
        .testTarget(
            name: "RondoCommandTests",
            dependencies: ["RondoCommand", "RondoLab", "Rondo"],
            swiftSettings: settings),
        .testTarget(
            name: "RondoLabTests",
            dependencies: [
                "RondoMutex", "RondoLab", "RondoTrace", "RondoCommand", "Rondo", "RondoTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoConnectionsTests",
            dependencies: [
                "RondoMutex", "Rondo", "RondoConnections", "RondoHTTP", "RondoStreams", "RondoTesting",
                "RondoTestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "RondoTestingTests",
            dependencies: ["RondoTesting", "RondoCore", "RondoTestSupport"],
            swiftSettings: settings),
        // Programs as they were written for Apple's systems, by Apple's names.
        .testTarget(
            name: "RondoApplePatternsTests",
            dependencies: ["RondoMutex", "Rondo", "RondoTestSupport"],
            swiftSettings: settings),
        // What needs the main thread, which no test has: a scenario an argument.
        .executableTarget(
            name: "RondoMainLoopProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoMainLoopProbe",
            swiftSettings: settings),
        // What is killed while it stores things.
        .executableTarget(
            name: "RondoStorageProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoStorageProbe",
            swiftSettings: settings),
        // What is run while system calls fail on purpose (Tests/RondoFaults): a scenario an argument.
        .executableTarget(
            name: "RondoFaultProbe",
            dependencies: ["RondoMutex", "Rondo"],
            path: "Tests/RondoFaultProbe",
            swiftSettings: settings),
        .testTarget(
            name: "RondoTests",
            dependencies: [
                "Rondo", "RondoTestSupport", "RondoMainLoopProbe", "RondoStorageProbe", "RondoFaultProbe",
            ],
            swiftSettings: settings),
        // One target for each way in which Rondo's names have to resolve.
        .testTarget(name: "RondoTestsImportClass", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsQualified", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsModuleSelector", dependencies: ["Rondo"], swiftSettings: settings),
        .testTarget(name: "RondoTestsXCTest", dependencies: ["Rondo"], swiftSettings: settings),
    ]
)

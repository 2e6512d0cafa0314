// swift-tools-version: 6.2

import PackageDescription

// A package of its own, because it wants unsafe flags, which would forbid the use of Rondo as a dependency. It
// sees Rondo's sources by a link, so that what is `package` there is seen here; what is internal, by `@testable`.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .unsafeFlags(["-sanitize=fuzzer,address", "-parse-as-library", "-enable-testing"]),
]

let package = Package(
    name: "Fuzz",
    dependencies: [.package(url: "https://github.com/apple/swift-log", from: "1.6.0")],
    targets: [
        .systemLibrary(name: "CRondoEv"),
        .systemLibrary(name: "CRondoOpenSSL", pkgConfig: "openssl"),
        .systemLibrary(name: "CRondoZlib"),
        .systemLibrary(name: "CRondoLibraries"),
        .systemLibrary(name: "CRondoSQLite"),
        .systemLibrary(name: "CFuzzer", path: "CFuzzer"),
        .target(name: "RondoMutex", swiftSettings: settings),
        .target(name: "RondoLibraries", dependencies: ["CRondoLibraries"], swiftSettings: settings),
        .target(
            name: "RondoHTTP",
            dependencies: ["RondoMutex", "RondoLibraries", "CRondoOpenSSL", "CRondoZlib", "CRondoLibraries"],
            swiftSettings: settings),
        .target(
            name: "RondoCore",
            dependencies: ["RondoMutex", "CRondoEv", .product(name: "Logging", package: "swift-log")],
            swiftSettings: settings),
        .target(
            name: "RondoStreams",
            dependencies: ["RondoMutex", "RondoLibraries", "RondoCore", "CRondoOpenSSL", "CRondoSystem"],
            swiftSettings: settings),
        .target(name: "CRondoSystem"),
        .target(
            name: "RondoSystem",
            dependencies: [
                "RondoMutex", "RondoCore", "RondoStreams", "CRondoSystem",
                .product(name: "Logging", package: "swift-log"),
            ],
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
        .target(name: "CRondoStart"),
        .target(
            name: "RondoTrace", dependencies: ["RondoMutex", "RondoCore", "CRondoStart", "CRondoSystem"],
            swiftSettings: settings),
        .target(
            name: "Rondo",
            dependencies: [
                "RondoCore", "RondoStreams", "RondoSystem", "RondoHTTP", "RondoConnections", "RondoSessions",
                "RondoTrace",
            ],
            swiftSettings: settings),
        .target(
            name: "RondoLab", dependencies: ["RondoMutex", "Rondo", "RondoTrace"], swiftSettings: settings),
        .executableTarget(
            name: "Fuzzer",
            dependencies: [
                "RondoHTTP", "RondoStreams", "RondoConnections", "RondoTrace", "RondoLab", "CFuzzer",
            ],
            path: "Fuzzer", swiftSettings: settings,
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]),
    ]
)

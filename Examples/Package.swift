// swift-tools-version: 6.2

import PackageDescription

let names = [
    "BackgroundLoader", "CustomMode", "CommonModesAndTimer", "DownloadToStream", "EventStream",
    "EightDownloads",
    "WebSocketChat",
]

let package = Package(
    name: "RondoExamples",
    dependencies: [.package(name: "Rondo", path: "..")],
    targets: names.map { name in
        .executableTarget(
            name: name,
            dependencies: [.product(name: "Rondo", package: "Rondo")],
            path: name,
            exclude: ["README.md"],
            swiftSettings: [.swiftLanguageMode(.v6)])
    })

extension Experiment {
    /// All experiments, in the order in which a reader should meet them.
    package static let all: [Experiment] = [
        .scrollingStalls, .commonModes, .timerModes, .scheduleAfterStart, .threadWithoutLoop, .anatomyOfAPass,
        .runCannotBeStopped, .pollingLoop, .nestedLoops, .stopTheWrongLoop, .delegateQueue,
        .synchronousRequest,
        .missedBeats, .performAndWakeUp, .oneEventUntilYouRead, .redirects, .lateChallenge, .saveADownload,
        .uploadWithProgress, .mixedReplace, .cachePolicies, .twoLoopsOneSource, .actorOnAMode, .mainQueue,
        .childEndsMeanwhile, .sessionOnAMode, .slowDelegate, .handlerThread,
        .notificationWhenIdle, .foundationTimer,
    ]

    package static func named(_ name: String) -> Experiment? {
        all.first { $0.name == name }
    }
}

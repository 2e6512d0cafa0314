// Tests the bridges between Rondo's run loop and Foundation's, which need the main thread. The program runs
// the scenario that its argument names, and exits with 0 if the rule holds.

import Rondo

let scenarios: [String: () -> Void] = [
    "BR-1": guestIsServed, "BR-2": guestIsNotPolled, "BR-3": guestLeavesTheMainQueue,
    "BR-4": guestHasModesAndObservers,
    "guest-runs": guestRunsByItself, "guest-in-run": guestBeginsInARun,
    "BR-5": foundationRunsInASleep, "BR-6": eventsEndTheSleep, "BR-7": callbacksEndTheSleep,
    "BR-8": drainsAreCounted,
    "BR-9": sleepsThatAreNotBorrowed, "BR-10": gateIsShut, "sleep-nested": runsInsideASleep,
    "sleep-off": sleepIsGivenBack,
    "BR-11": pollsServeFoundation, "BR-12": pollsAreInTime, "BR-13": pollsServeAllKinds,
    "BR-13-three": pollsComeInThrees,
    "BR-14": pollsAreNotNested,
    "BR-16": otherLoopsStandStill, "BR-17": bridgesAreOff, "BR-17-two": twoBridges,
    "leaves": bridgesLeaveNothing, "BR-18": withoutABridge,
    "full-guest": {
        withoutDescriptors { RunLoop.main.hostInFoundation(mode: .default) }
    },
    "full-sleep": {
        withoutDescriptors { RunLoop.main.servesFoundation = true }
    },
    "full-polls": pollsCountAfterAShortage,
    "figures": figures,
]

guard let name = CommandLine.arguments.dropFirst().first, let scenario = scenarios[name] else {
    print("usage: RondoBridgeProbe \(scenarios.keys.sorted().joined(separator: "|"))")
    exit(2)
}
scenario()
print("\(name) holds")

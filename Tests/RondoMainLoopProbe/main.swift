// Tests rules of the main loop, which no test can have: Swift Testing never runs on the main thread. The
// program runs the scenario that its first argument names, and exits with 0 if the rule holds. It is
// synchronous, because an async main gives the main thread away.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
guard let name = arguments.first, let scenario = scenarios[name] else {
    print("usage: RondoMainLoopProbe \(scenarios.keys.sorted().joined(separator: "|")) [URL]")
    exit(2)
}
scenario(Array(arguments.dropFirst()))
print("\(name) holds")

// Tests of children that need a process of their own, or its main thread. The program runs the scenario that
// its first argument names, and exits with 0 if the rules hold.
//
// `stress` is not a test of the suite: `make stress-children` runs it under the sanitizers.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
guard let name = arguments.first, let scenario = scenarios[name] else {
    print("usage: RondoChildProbe \(scenarios.keys.sorted().joined(separator: "|")) [argument …]")
    exit(2)
}
scenario(Array(arguments.dropFirst()))
print("\(name) holds")

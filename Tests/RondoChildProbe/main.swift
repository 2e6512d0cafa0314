// A program for the tests of children, where a test needs a process, or its main thread, for itself. It plays the scenario
// that its first argument names, and exits with 0 if everything is as the rules have it.
//
// `stress` is no test of the suite: it is what `make stress-children` runs under the sanitizers.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
guard let name = arguments.first, let scenario = scenarios[name] else {
    print("usage: RondoChildProbe \(scenarios.keys.sorted().joined(separator: "|")) [argument …]")
    exit(2)
}
scenario(Array(arguments.dropFirst()))
print("\(name) holds")

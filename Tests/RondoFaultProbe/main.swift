// A program that runs while system calls fail on purpose; see Tests/RondoFaults. It runs the scenario that
// its first argument names, and exits with 0 if every object ends as it should.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
guard let name = arguments.first, let scenario = scenarios[name] else {
    print("usage: RondoFaultProbe \(scenarios.keys.sorted().joined(separator: "|")) [URL]")
    exit(2)
}
scenario(Array(arguments.dropFirst()))
print("\(name) holds")

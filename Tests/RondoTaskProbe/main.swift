// Tasks of one session, resumed, suspended and cancelled at random by several threads: a program, so that a sanitizer's build
// of it takes only what it needs.
//
//     RondoTaskProbe stress [COUNT [THREADS [SEED]]]
//
// Prints "stress holds" and what it saw, or "stress fails" and why, with status 1.

import Rondo

let arguments = CommandLine.arguments.dropFirst()
guard arguments.first == "stress" else {
    print("usage: RondoTaskProbe stress [COUNT [THREADS [SEED]]]")
    exit(2)
}
let numbers = arguments.dropFirst().map { Int($0) ?? 0 } + [0, 0, 0]
var stress = Stress(
    count: numbers[0] > 0 ? numbers[0] : 10_000, threads: numbers[1] > 0 ? numbers[1] : 4,
    seed: UInt64(numbers[2] > 0 ? numbers[2] : 1))
let failures = stress.run()
for failure in failures.prefix(20) { print("stress fails: \(failure)") }
print(failures.isEmpty ? "stress holds: \(stress.summary)" : "stress fails: \(stress.summary)")
exit(failures.isEmpty ? 0 : 1)

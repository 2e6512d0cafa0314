// Several threads resume, suspend and cancel tasks of one session at random. It is a program of its own, so
// that a sanitizer's build contains only what it needs.
//
//     RondoTaskProbe stress [COUNT [THREADS [SEED]]]
//
// Prints "stress holds" and its counts, or "stress fails" and the reasons, with status 1.

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

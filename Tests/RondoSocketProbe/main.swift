// Several threads, and callbacks, use sockets, descriptors, ports and streams of handles at random. It is a
// program of its own, so that a sanitizer's build contains only what it needs.
//
//     RondoSocketProbe stress [ROUNDS [THREADS [SEED]]]
//
// Prints "stress holds" and its counts, or "stress fails" and the reasons, with status 1.

import Rondo

let arguments = CommandLine.arguments.dropFirst()
guard arguments.first == "stress" else {
    print("usage: RondoSocketProbe stress [ROUNDS [THREADS [SEED]]]")
    exit(2)
}
// Writing to a pipe or socket whose other end is closed must not end the program.
signal(SIGPIPE, SIG_IGN)
let numbers = arguments.dropFirst().map { Int($0) ?? 0 } + [0, 0, 0]
var stress = Stress(
    rounds: numbers[0] > 0 ? numbers[0] : 2_000, threads: numbers[1] > 0 ? numbers[1] : 4,
    seed: UInt64(numbers[2] > 0 ? numbers[2] : 1))
let failures = stress.run()
for failure in failures.prefix(20) { print("stress fails: \(failure)") }
print(failures.isEmpty ? "stress holds: \(stress.summary)" : "stress fails: \(stress.summary)")
exit(failures.isEmpty ? 0 : 1)

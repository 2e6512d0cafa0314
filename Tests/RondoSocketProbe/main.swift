// Several threads, and callbacks, use sockets, descriptors, ports and streams of handles at random. It is a
// program of its own, so that a sanitizer's build contains only what it needs. See `StressProgram`.

import Rondo
import RondoProbeSupport

let program = StressProgram("RondoSocketProbe", counted: "ROUNDS", defaultCount: 2_000)
// Writing to a pipe or socket whose other end is closed must not end the program.
signal(SIGPIPE, SIG_IGN)
var stress = Stress(rounds: program.count, threads: program.threads, seed: program.seed)
let failures = stress.run()
program.end(failures, stress.summary)

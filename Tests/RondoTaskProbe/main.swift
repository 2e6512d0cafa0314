// Several threads resume, suspend and cancel tasks of one session at random. It is a program of its own, so
// that a sanitizer's build contains only what it needs. See `StressProgram`.

import Rondo
import RondoProbeSupport

let program = StressProgram("RondoTaskProbe", counted: "TASKS", defaultCount: 10_000)
var stress = Stress(count: program.count, threads: program.threads, seed: program.seed)
let failures = stress.run()
program.end(failures, stress.summary)

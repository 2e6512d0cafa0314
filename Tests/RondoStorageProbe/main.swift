// A test kills this program while it stores things, and starts it again: everything that it has reported as
// stored must be there. It is synchronous, because an async main gives the main thread away.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "cookies" where arguments.count >= 3: storeCookies(in: arguments[1], from: Int(arguments[2]) ?? 0)
case "responses" where arguments.count >= 3:
    let count = arguments.count > 3 ? Int(arguments[3]) : nil
    storeResponses(in: arguments[1], from: Int(arguments[2]) ?? 0, count: count ?? 1_000_000)
default:
    print("usage: RondoStorageProbe cookies DIR NUMBER | responses DIR NUMBER [COUNT]")
    exit(2)
}

// A program that a test kills while it stores things, and starts anew: what it has reported as stored has to be there.
// Synchronous from top to bottom, since an async main gives the main thread away.

import Rondo

let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "cookies" where arguments.count >= 3: storeCookies(in: arguments[1], from: Int(arguments[2]) ?? 0)
default:
    print("usage: RondoStorageProbe cookies DIR NUMBER")
    exit(2)
}

import ArgumentParser
import Rondo
import RondoLab

/// `rondo fetch`: one load through `URLConnection`, with curl's names for what curl has too.
struct Fetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Load a URL through URLConnection, on a run loop of its own.",
        discussion: """
            Redirects are followed. The body goes to standard output unless -o or -O says otherwise. \
            Ends with 0 when the load finishes, 1 when it fails, 2 when the command line is wrong.
            """)

    @Argument(help: "What to load; http:// is assumed where there is no scheme.")
    var url: String

    @Option(
        name: [.customShort("o", allowingJoined: true), .customLong("output")],
        help: ArgumentHelp("Write the body to a file; - is standard output.", valueName: "file"))
    var output: String?

    @Flag(
        name: [.customShort("O"), .customLong("remote-name")],
        help: "Write the body to a file named as the end of the URL's path.")
    var remoteName = false

    @Option(
        name: [.customShort("X", allowingJoined: true), .customLong("request")],
        help: ArgumentHelp("The method.", valueName: "method"))
    var method: String?

    @Option(
        name: [.customShort("H", allowingJoined: true), .customLong("header")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field to send: 'Name: value'; 'Name;' without a value; 'Name:' not at all.",
            valueName: "field"))
    var headers: [String] = []

    @Option(
        name: [.customShort("d", allowingJoined: true), .customLong("data")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "Post this as a form; @FILE reads it from a file, several are joined by &.", valueName: "data"))
    var data: [String] = []

    @Flag(name: [.customShort("I"), .customLong("head")], help: "Ask for the head alone, and print it.")
    var head = false

    @Flag(
        name: [.customShort("L"), .customLong("location")], inversion: .prefixedNo,
        help: "Follow redirects, or take the redirect itself as the answer.")
    var location = true

    @Option(
        name: [.customShort("u", allowingJoined: true), .customLong("user")],
        help: ArgumentHelp(
            "Name and password for the origin of the URL, sent to no other.", valueName: "user:password"))
    var user: String?

    @Option(
        name: [.customShort("x", allowingJoined: true), .customLong("proxy")],
        help: ArgumentHelp(
            "Go by this proxy: http://, socks5:// or socks4://host:port; '' for none. Without it, as "
                + "http_proxy, https_proxy, all_proxy and no_proxy say.", valueName: "url"))
    var proxy: String?

    @Option(
        name: [.customShort("w", allowingJoined: true), .customLong("write-out")],
        help: ArgumentHelp(
            "Print this behind the load, with curl's variables: %{http_code}, %{time_total}, %{json} …",
            valueName: "format"))
    var writeOut: String?

    @Option(help: ArgumentHelp("Trust the certificates in this PEM file alone.", valueName: "file"))
    var cacert: String?

    @Flag(
        name: [.customShort("k"), .customLong("insecure")], help: "Do not verify the server's certificate.")
    var insecure = false

    @Option(
        name: [.customShort("m", allowingJoined: true), .customLong("max-time")],
        help: ArgumentHelp("Give up after this time in all.", valueName: "seconds"))
    var maxTime: Double?

    @Flag(name: .shortAndLong, help: "Tell on standard error what is going on.")
    var verbose = false

    @Flag(name: .shortAndLong, help: "Show no progress.")
    var silent = false

    @Option(help: ArgumentHelp("The run loop mode to load in.", valueName: "name"))
    var mode = "default"

    @Flag(help: "Print one JSON object a line for each call that the delegate gets; no body without -o.")
    var json = false

    func run() throws {
        let status = FetchRun(plan: try plan()).run()
        if status != 0 { throw ExitCode(status) }
    }
}

import RondoTestSupport

/// The other end of a socket: a program in Python's standard library, which is told by lines what to do.
///
/// | line | what it does |
/// | --- | --- |
/// | `send TEXT` | sends the text |
/// | `sendto PORT TEXT`, `multicast GROUP PORT TEXT` | sends a datagram |
/// | `read COUNT` | says "GOT TEXT" when so many bytes have come |
/// | `drain` | says "RUNS A1 B2": how often each letter has come in a row, to the end |
/// | `receive` | says "GOT TEXT FROM PORT" of a datagram |
/// | `end`, `reset` | closes the connection, in order or not |
enum SocketStranger {
    enum Kind: String {
        case client, server, datagrams
        /// Connects as often as the number after the port says, and ends.
        case many
    }

    /// A client of `port`; of a server and of datagrams the port is told, by "PORT ".
    static func start(_ kind: Kind, _ port: UInt16 = 0, _ count: Int = 0) throws -> TestServerProcess {
        try TestServerProcess(["python3", "-c", script, kind.rawValue, String(port), String(count)])
    }

    private static let script = """
        import itertools, socket, struct, sys
        kind, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        def say(*words): print(*words, flush=True)
        if kind == "many":
            for _ in range(count): socket.create_connection(("127.0.0.1", port)).close()
            say("DONE")
            sys.exit()
        if kind == "client": s = socket.create_connection(("127.0.0.1", port))
        if kind == "server":
            listener = socket.create_server(("127.0.0.1", 0))
            say("PORT", listener.getsockname()[1])
            s, _ = listener.accept()
        if kind == "datagrams":
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("127.0.0.1", 0))
        say("PORT", s.getsockname()[1])
        for line in sys.stdin:
            word, _, rest = line.rstrip("\\n").partition(" ")
            if word == "send": s.sendall(rest.encode())
            elif word == "sendto":
                to, _, text = rest.partition(" ")
                s.sendto(text.encode(), ("127.0.0.1", int(to)))
            elif word == "multicast":
                group, to, text = rest.split(" ", 2)
                s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
                s.sendto(text.encode(), (group, int(to)))
            elif word == "read":
                data = b""
                while len(data) < int(rest):
                    piece = s.recv(int(rest) - len(data))
                    if not piece: break
                    data += piece
                say("GOT", data.decode())
            elif word == "drain":
                data = bytearray()
                while piece := s.recv(65536): data += piece
                say("RUNS", *(chr(k) + str(len(list(g))) for k, g in itertools.groupby(data)))
            elif word == "receive":
                data, sender = s.recvfrom(65536)
                say("GOT", data.decode(), "FROM", sender[1])
            elif word == "end": s.close()
            elif word == "reset":
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        """
}

import RondoTestSupport

/// A server in Python's standard library, for what `openssl s_server` cannot be made to do. It accepts one
/// connection and ends.
enum PythonServer {
    enum Mode: String {
        /// Without TLS: answers in HTTP, random bytes, nothing but the end, or nothing at all.
        case http, garbage, close, silent
        /// Without TLS: sends what it receives back.
        case plainEcho
        /// Greets in plain text, answers the line "STARTTLS" by one of plain text, and then is `echo`.
        case startTLS
        /// Plain text in TLS's clothes: an alert record with a handshake_failure.
        case alert
        /// Sends what it receives back until the client's close_notify, then its own.
        case echo
        /// As echo, but its ciphertext comes one byte at a time.
        case drip
        /// Sends 100,000 bytes, then close_notify, and then waits for the client's end.
        case orderly
        /// Sends 100,000 bytes and closes the connection without close_notify.
        case truncate
        /// Reads only when told "go", to the end, and prints how much it was and its hash.
        case sink
        /// Sends a file's content, then close_notify, and waits for the client's end.
        case content
        /// Writes what it receives to a file, to the end, and says so.
        case save
        /// Told "go", says something unasked, and then writes what it receives to a file, to
        /// the end, and says whether that was close_notify.
        case late
        /// Told "go", sends without reading until it is stopped, and says so.
        case flood
        /// Neither reads nor says anything after the handshake, until its input ends.
        case deaf
        /// Sends 4,096 bytes and then some that are no record of TLS, and reads nothing until its input ends.
        case broken
        /// Says nothing until told, then sends a line, or the argument; told again, closes.
        case told
    }

    static func start(_ mode: Mode, _ argument: String = "") throws -> (TestServerProcess, UInt16) {
        let certificates = TestCertificates.shared
        let server = try TestServerProcess([
            "python3", "-c", script, mode.rawValue, certificates.path(.good), certificates.keyPath,
            argument,
        ])
        return (server, try server.port(after: "PORT "))
    }

    /// A client of such a server, connected but without its handshake.
    static func client(_ mode: Mode) throws -> BlockingTLSClient {
        let (server, port) = try start(mode)
        return try BlockingTLSClient(port: port, keeping: server)
    }

    private static let script = """
        import hashlib, os, socket, ssl, sys
        mode, certificate, key, argument = sys.argv[1:]
        listener = socket.create_server(("127.0.0.1", 0))
        # What it has not read is to stay with the client, and not to lie here or with a proxy, which would see the end.
        if mode == "late": listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        print("PORT", listener.getsockname()[1], flush=True)
        conn, _ = listener.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        def drain():
            try:
                while conn.recv(65536): pass
            except OSError: pass
        def plain(answer):
            conn.recv(65536)
            conn.sendall(answer)
            conn.shutdown(socket.SHUT_WR)
            drain()
        if mode == "http": plain(b"HTTP/1.1 400 Bad Request\\r\\nConnection: close\\r\\n\\r\\n"); sys.exit()
        if mode == "garbage": plain(bytes(range(1, 256)) * 4); sys.exit()
        if mode == "alert": plain(bytes([21, 3, 3, 0, 2, 2, 40])); sys.exit()
        if mode == "close": plain(b""); sys.exit()
        if mode == "silent": drain(); sys.exit()
        if mode == "plainEcho":
            while data := conn.recv(65536): conn.sendall(data)
            sys.exit()
        if mode == "startTLS":
            conn.sendall(b"220 ready\\n")
            if conn.recv(65536) != b"STARTTLS\\n": sys.exit()
            conn.sendall(b"220 go ahead\\n" + argument.encode())
            mode = "echo"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2", "http/1.1"])
        if mode == "drip":
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_side=True)
            def flush():
                for byte in outgoing.read(): conn.sendall(bytes([byte]))
            def run(call):
                while True:
                    try:
                        result = call()
                        flush()
                        return result
                    except ssl.SSLWantReadError:
                        flush()
                        data = conn.recv(65536)
                        if not data: sys.exit()
                        incoming.write(data)
            run(tls.do_handshake)
            while True:
                try: data = run(lambda: tls.read(65536))
                except ssl.SSLZeroReturnError: data = b""
                if not data: break
                run(lambda: tls.write(data))
            run(tls.unwrap)
            sys.exit()
        strict = mode == "late"
        try: tls = context.wrap_socket(conn, server_side=True, suppress_ragged_eofs=not strict)
        except (ssl.SSLError, OSError) as error: print("REFUSED", error, flush=True); sys.exit()
        if mode == "echo":
            while data := tls.recv(65536): tls.sendall(data)
            tls.unwrap()
        elif mode == "content":
            tls.sendall(open(argument, "rb").read())
            try: tls.unwrap()
            except OSError: pass
        elif mode == "orderly":
            tls.sendall(b"x" * 100000)
            tls.unwrap()
        elif mode == "truncate":
            tls.sendall(b"x" * 100000)
            conn = tls.detach()
            os.close(conn)
        elif mode == "sink":
            sys.stdin.readline()
            count, digest = 0, hashlib.sha256()
            while data := tls.recv(65536):
                count += len(data)
                digest.update(data)
            print("RECEIVED", count, digest.hexdigest(), flush=True)
        elif mode == "save":
            with open(argument, "wb") as file:
                while data := tls.recv(65536): file.write(data)
            print("SAVED", flush=True)
        elif mode == "late":
            sys.stdin.readline()
            # Until now it was small, so that much of what the client has written is still to be sent.
            tls.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            tls.sendall(b"late" * 10000)
            end = "close_notify"
            with open(argument, "wb") as file:
                try:
                    while data := tls.recv(65536): file.write(data)
                except OSError as error: end = repr(error)
            print("END", end, flush=True)
        elif mode == "flood":
            sys.stdin.readline()
            total = 0
            try:
                while True:
                    tls.sendall(bytes(65536))
                    total += 65536
            except OSError: print("STOPPED", total, flush=True)
        elif mode == "deaf":
            print("READY", flush=True)
            sys.stdin.read()
        elif mode == "broken":
            tls.sendall(bytes(4096))
            os.write(tls.fileno(), b"HTTP/1.1 200 OK" + bytes([13, 10]))
            sys.stdin.read()
        elif mode == "told":
            sys.stdin.readline()
            tls.sendall(argument.encode() or b"told\\n")
            print("SENT", flush=True)
            sys.stdin.readline()
            tls.close()
            print("CLOSED", flush=True)
        """
}

/// `openssl s_server`, which answers each line with the line reversed.
enum OpenSSLServer {
    static func start(_ kind: TestCertificates.Kind = .good, _ options: [String] = []) throws -> (
        TestServerProcess, UInt16
    ) {
        let certificates = TestCertificates.shared
        // The other certificates of the file, where there are some.
        let chain =
            kind == .withBetween || kind == .byNobody ? ["-cert_chain", certificates.path(kind)] : []
        let server = try TestServerProcess(
            [
                "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificates.path(kind), "-key",
                certificates.keyPath(kind), "-cipher", "DEFAULT@SECLEVEL=0", "-rev",
            ] + chain + options)
        return (server, try server.port(after: "ACCEPT "))
    }
}

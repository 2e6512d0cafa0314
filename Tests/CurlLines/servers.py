"""Servers that do what is asked of them by the path, and note what they saw: HTTP, HTTPS, proxies and a Unix socket."""
import base64
import gzip
import hashlib
import os
import re
import select
import socket
import ssl
import struct
import threading
import time
import zlib

TEXT = b"0123456789" * 10
MODIFIED = "Wed, 01 Jan 2020 00:00:00 GMT"


class Gone(Exception):
    """The client has closed the connection."""


class Connection:
    """The server's end of one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise Gone()
        self.buffer += piece

    def line(self):
        while b"\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.rstrip(b"\r")

    def read(self, count):
        while len(self.buffer) < count:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        first = self.line().decode("latin-1")
        fields = []
        while True:
            line = self.line().decode("latin-1")
            if not line:
                return first, fields
            name, _, value = line.partition(":")
            fields.append((name, value.strip()))

    def send(self, data):
        self.sock.sendall(data)


class Server:
    """Accepts connections and serves each on a thread of its own. What it saw is in the log of its stage."""

    def __init__(self, stage, name, context=None, path=None):
        self.stage, self.name, self.context = stage, name, context
        if path:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.bind(path)
            self.port = 0
        else:
            self.sock = socket.socket()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(("127.0.0.1", 0))
            self.port = self.sock.getsockname()[1]
        self.sock.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sock, _ = self.sock.accept()
            threading.Thread(target=self.run, args=(sock,), daemon=True).start()

    def run(self, sock):
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                self.shake_hands(sock)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) if self.port else None
            connection = Connection(sock)
            while self.serve(connection):
                pass
        except (Gone, OSError, ValueError):
            pass
        finally:
            try:
                sock.close()
            except OSError:
                pass

    @staticmethod
    def shake_hands(sock):
        """The handshake. After one that fails, what the client had sent is read: a socket that is closed with bytes
        unread resets the connection, and the client may lose the alert that says why."""
        try:
            sock.do_handshake()
        except ssl.SSLError:
            sock.shutdown(socket.SHUT_WR)  # ends TLS on this socket as well: from here on it reads plain bytes
            sock.settimeout(30)
            while sock.recv(65536):
                pass
            raise


class HTTPServer(Server):
    def serve(self, connection):
        if not connection.buffer:
            connection.more()
        if connection.buffer[0] == 0x16:  # TLS, where none is spoken
            connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        first, fields = connection.head()
        method, target, version = (first.split(" ") + ["", ""])[:3]
        values = {name.lower(): value for name, value in fields}
        if "expect" in values and "/refuses-expect" in target:
            self.stage.note(self.name, method, target, version, fields, b"")
            connection.send(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
            return False
        if values.get("expect", "").lower() == "100-continue" and "/no100" not in target:
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.body(connection, values)
        self.stage.note(self.name, method, target, version, fields, body)
        path = re.sub(r"^http://[^/]*", "", target)
        return self.answer(connection, method, path, values, body)

    @staticmethod
    def body(connection, values):
        if values.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while True:
                size = int(connection.line().split(b";")[0], 16)
                body += connection.read(size)
                if size:
                    connection.line()
                else:
                    while connection.line():
                        pass
                    return body
        return connection.read(int(values.get("content-length") or 0))

    def answer(self, connection, method, path, values, body):
        path, _, query = path.partition("?")
        status, fields, content = 200, [("Content-Type", "text/plain")], b"hello\n"
        part = path.split("/")
        name = part[1] if len(part) > 1 else ""
        argument = part[2] if len(part) > 2 else ""
        raw = {
            "http09": b"hello without a head\n",
            "badchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
            "partial": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this\n",
            "partialchunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\nonly this\n",
            "halfhead": b"HTTP/1.1 200 OK\r\nContent-Le",
            "badhead": b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
            "close": b"HTTP/1.1 200 OK\r\n\r\nuntil the end\n",
            "http10": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold\n",
            "empty": b"",
        }.get(name)
        if raw is not None:
            connection.send(raw)
            return False
        if name == "reset":
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if name == "badrecord":  # over TLS
            self.head(connection, 200, [("Content-Length", "100")])
            connection.send(b"hello\n")
            os.write(connection.sock.fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
            connection.more()
        if name == "echo":
            content = body
        elif name == "bin":
            content, fields = bytes(range(256)), [("Content-Type", "application/octet-stream")]
        elif name == "big":
            content = b"x" * int(argument)
        elif name == "f":
            content = f"file {path} {query}\n".encode("latin-1")
        elif name == "status":
            status, content = int(argument), f"status {argument}\n".encode()
        elif name == "r":
            left = int(argument)
            if left:
                status, content = 302, b"moved\n"
                fields.append(("Location", f"/r/{left - 1}"))
            else:
                content = b"done\n"
        elif name == "rc":
            status, content = int(argument), b"moved\n"
            fields.append(("Location", "/" + "/".join(part[3:] or ["final"])))
        elif name == "to":
            status, content = 302, b"moved\n"
            fields.append(("Location", self.stage.places(query)))
        elif name == "loop":
            status, content = 302, b"again\n"
            fields.append(("Location", "/loop"))
        elif name == "noloc":
            status, content = 302, b"nowhere\n"
        elif name == "cookies":
            fields += [("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/; HttpOnly; Expires=Fri, 01 Jan 2038 00:00:00 GMT"),
                       ("Set-Cookie", "c=3; Path=/deep")]
            if argument:
                status = 302
                fields.append(("Location", "/" + "/".join(part[2:])))
        elif name == "auth":
            if values.get("authorization") != "Basic " + base64.b64encode(b"user:pass").decode():
                status, content = 401, b"who are you?\n"
                fields.append(("WWW-Authenticate", 'Basic realm="here"'))
        elif name == "digest":
            if not self.knows(values.get("authorization", ""), method):
                status, content = 401, b"who are you?\n"
                fields.append(("WWW-Authenticate", 'Digest realm="here", nonce="abcdef", qop="auth", algorithm=MD5'))
        elif name in ("gzip", "deflate", "gzipalways", "badgzip"):
            content = b"compressible " * 50 + b"\n"
            accepted = values.get("accept-encoding", "")
            if name == "gzipalways" or name.removeprefix("bad") in accepted:
                coding = "deflate" if name == "deflate" else "gzip"
                content = zlib.compress(content) if coding == "deflate" else gzip.compress(content, mtime=0)
                if name == "badgzip":
                    content = b"this is no gzip"
                fields.append(("Content-Encoding", coding))
        elif name == "mixed":
            fields = [("Content-Type", "multipart/x-mixed-replace; boundary=x")]
            content = b"--x\r\nContent-Type: text/plain\r\n\r\none\r\n--x\r\nX-A: 1\r\n\r\ntwo\r\n--x--\r\n"
        elif name == "chunked":
            fields.append(("Transfer-Encoding", "chunked"))
            self.head(connection, status, fields)
            if method != "HEAD":
                for piece in (b"one\n", b"two\n"):
                    connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                connection.send(b"0\r\n\r\n")
            return True
        elif name == "range":
            content = TEXT
            fields.append(("Accept-Ranges", "bytes"))
            if argument:
                fields.append(("Content-Encoding", argument))
            match = re.fullmatch(r"bytes=(\d*)-(\d*)", values.get("range", ""))
            if match and match[0] != "bytes=-":
                first = int(match[1]) if match[1] else max(0, len(TEXT) - int(match[2]))
                last = int(match[2]) if match[1] and match[2] else len(TEXT) - 1
                if first >= len(TEXT):
                    status, content = 416, b"not there\n"
                    fields.append(("Content-Range", f"bytes */{len(TEXT)}"))
                else:
                    last = min(last, len(TEXT) - 1)
                    status, content = 206, TEXT[first:last + 1]
                    fields.append(("Content-Range", f"bytes {first}-{last}/{len(TEXT)}"))
        elif name == "norange":
            content = TEXT
        elif name == "wrongrange":  # whatever part was asked for
            status, content = 206, TEXT
            if argument:
                first, last = argument.split("-")
                content = TEXT[int(first):int(last) + 1]
                fields.append(("Content-Range", f"bytes {argument}/100"))
        elif name == "cd":
            fields.append(("Content-Disposition", f'attachment; filename="{argument or "named.txt"}"'))
        elif name == "cdpath":
            fields.append(("Content-Disposition", 'attachment; filename="../up/evil.txt"'))
        elif name == "cdsemicolon":
            fields.append(("Content-Disposition", "attachment; filename=\"one;two.txt\"; filename*=UTF-8''other.txt"))
        elif name == "etag":
            fields.append(("ETag", '"abc"'))
            if values.get("if-none-match") == '"abc"':
                status, content = 304, b""
        elif name in ("modified", "modified200"):
            fields.append(("Last-Modified", MODIFIED))
            if name == "modified" and "if-modified-since" in values:
                status, content = 304, b""
        elif name == "retry":
            if self.stage.count(path) <= int(argument or 1):
                status, content = int(part[4]) if len(part) > 4 else 503, b"not yet\n"
                if len(part) > 3:
                    fields.append(("Retry-After", part[3]))
        elif name == "half":  # half of an error, the first time
            if self.stage.count(path) == 1:
                connection.send(b"HTTP/1.1 503 Later\r\nContent-Length: 100\r\n\r\nonly this\n")
                return False
        elif name == "slow":
            time.sleep(float(argument))
        elif name == "drip":
            self.head(connection, 200, fields)
            connection.send(b"...")
            connection.more()  # until the client has had enough
        elif name == "dup":
            fields += [("X-A", "1"), ("X-A", "2"), ("X-Empty", "")]
        elif name == "form":
            content = b"fields: " + str(len(body)).encode() + b"\n"
        if status in (204, 304):
            content = b""
        if status not in (204, 304):
            fields.append(("Content-Length", str(len(content))))
        self.head(connection, status, fields)
        if method != "HEAD":
            connection.send(content)
        return True

    @staticmethod
    def head(connection, status, fields):
        reasons = {200: "OK", 204: "No Content", 206: "Partial Content", 302: "Found", 304: "Not Modified", 401: "Unauthorized", 404: "Not Found"}
        text = f"HTTP/1.1 {status} {reasons.get(status, 'Status')}\r\n"
        text += "".join(f"{name}: {value}\r\n" for name, value in fields)
        connection.send((text + "\r\n").encode("latin-1"))

    @staticmethod
    def knows(field, method):
        if not field.startswith("Digest "):
            return False
        found = {key: plain or quoted for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]*))', field)}
        md5 = lambda text: hashlib.md5(text.encode()).hexdigest()
        first, second = md5("user:here:pass"), md5(f"{method}:{found.get('uri')}")
        wanted = md5(":".join([first, "abcdef", found.get("nc", ""), found.get("cnonce", ""), found.get("qop", ""), second]))
        return found.get("response") == wanted


class ProxyServer(HTTPServer):
    """Hands requests on by answering them itself, and makes tunnels; with a password if it is named so."""

    def serve(self, connection):
        first, fields = connection.head()
        method, target, version = (first.split(" ") + ["", ""])[:3]
        values = {name.lower(): value for name, value in fields}
        body = b"" if method == "CONNECT" else self.body(connection, values)
        self.stage.note(self.name, method, target, version, fields, body)
        wanted = "Basic " + base64.b64encode(b"user:pass").decode()
        if "auth" in self.name and values.get("proxy-authorization") != wanted:
            connection.send(b'HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm="proxy"\r\nContent-Length: 4\r\n\r\nwho\n')
            return method != "CONNECT"
        if method != "CONNECT":
            return self.answer(connection, method, re.sub(r"^http://[^/]*", "", target), values, body)
        if "refusing" in self.name:
            connection.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
            return False
        host, _, port = target.rpartition(":")
        tunnel(connection, int(port), b"HTTP/1.1 200 Connected\r\n\r\n")
        return False


class ResettingServer(Server):
    """Resets a connection when it has got the first bytes."""

    def serve(self, connection):
        connection.more()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


class SOCKSServer(Server):
    """SOCKS 5 and 4 without a password, to this machine whatever the name."""

    def serve(self, connection):
        version = connection.read(1)[0]
        if version == 4:
            _, port, address = struct.unpack(">BH4s", connection.read(7))
            while connection.read(1) != b"\0":
                pass
            name = b""
            if address[:3] == b"\0\0\0":
                while (byte := connection.read(1)) != b"\0":
                    name += byte
            self.stage.note(self.name, "SOCKS4", "", "", [], b"")
            tunnel(connection, port, b"\0\x5a" + bytes(6))
            return False
        connection.read(connection.read(1)[0])
        connection.send(b"\x05\x00")
        _, _, _, kind = connection.read(4)
        name = connection.read(4) if kind == 1 else connection.read(connection.read(1)[0]) if kind == 3 else connection.read(16)
        port = struct.unpack(">H", connection.read(2))[0]
        self.stage.note(self.name, "SOCKS5", "", "", [], b"")
        tunnel(connection, port, b"\x05\x00\x00\x01" + bytes(6))
        return False


def tunnel(connection, port, answer):
    other = socket.create_connection(("127.0.0.1", port))
    connection.send(answer)
    ends = [connection.sock, other]
    with other:
        if connection.buffer:
            other.sendall(connection.buffer)
        while True:
            for end in select.select(ends, [], [])[0]:
                piece = end.recv(65536)
                if not piece:
                    return
                ends[1 - ends.index(end)].sendall(piece)


class Stage:
    """The servers for the runs of one program, one run after the other."""

    def __init__(self, folder, certificates):
        self.lock = threading.Lock()
        self.reset()
        secure, mutual, old = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(3))
        for context in (secure, mutual, old):
            context.load_cert_chain(certificates + "/server.pem", certificates + "/server.key")
        mutual.verify_mode = ssl.CERT_REQUIRED
        mutual.load_verify_locations(certificates + "/ca.pem")
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        self.unix = folder + "/socket"
        refused = socket.socket()
        refused.bind(("127.0.0.1", 0))
        self.refused = refused  # bound and not listening: connections are refused for as long as it lives
        ports = {
            "H": HTTPServer(self, "http"), "O": HTTPServer(self, "other"), "S": HTTPServer(self, "https", secure),
            "M": HTTPServer(self, "mutual", mutual), "T": HTTPServer(self, "tls12", old),
            "X": ProxyServer(self, "proxy"), "A": ProxyServer(self, "auth-proxy"),
            "D": ProxyServer(self, "refusing-proxy"), "K": SOCKSServer(self, "socks"),
            "Z": ResettingServer(self, "resetting"),
        }
        HTTPServer(self, "unix", path=self.unix)
        self.ports = {name: server.port for name, server in ports.items()} | {"R": refused.getsockname()[1]}
        self.names = {name: f"127.0.0.1:{port}" for name, port in self.ports.items()}

    def reset(self):
        with self.lock:
            self.seen, self.counts = [], {}

    def note(self, *what):
        with self.lock:
            self.seen.append(what)

    def count(self, key):
        with self.lock:
            self.counts[key] = self.counts.get(key, 0) + 1
            return self.counts[key]

    def places(self, text):
        """What $H and its kin stand for."""
        values = {"U": self.unix}
        for name, port in self.ports.items():
            values["P" + name] = str(port)
            values[name] = {"H": "http://", "O": "http://", "S": "https://", "M": "https://", "T": "https://",
                            "R": "http://"}.get(name, "") + f"127.0.0.1:{port}"
        return re.sub(r"\$(P?[A-Z])", lambda match: values.get(match[1], match[0]), text)

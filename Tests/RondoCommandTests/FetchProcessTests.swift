import Foundation
import RondoTestSupport
import Testing

/// `rondo fetch` as a process, with standard streams that wait, are full or have no reader.
@Suite(.timeLimit(.minutes(2))) struct FetchProcessTests {
    /// Runs a script that has the tool's path as its first argument.
    private func python(_ script: String) throws -> String {
        let head = """
            import socket, subprocess, sys
            def fetch(*words, **streams):
                return subprocess.Popen([sys.argv[1], 'fetch', *words], **streams)
            def silent_server():
                server = socket.create_server(('127.0.0.1', 0))
                return server, 'http://127.0.0.1:%d/' % server.getsockname()[1]
            def receive(client):
                piece = client.recv(65536)
                if not piece: raise EOFError('the request breaks off')
                return piece
            def accept_request(server, end=b'\\r\\n\\r\\n'):
                client, _ = server.accept()
                got = b''
                while not got.endswith(end): got += receive(client)
                return client, got
            def respond(client, head):
                client.sendall(b'HTTP/1.1 ' + head + b'\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n')
                client.close()

            """
        return try TestServerProcess.run(["python3", "-c", head + script, try BuiltFiles.command])
    }

    @Test func `a limit of time ends a transfer whose standard input does not come`() throws {
        let output = try python(
            """
            server, url = silent_server()
            late = fetch('-sH', 'Expect:', '-m', '0.3', '-T', '-', url, stdin=subprocess.PIPE)
            print(late.wait())
            """)
        #expect(output == "28")
    }

    @Test(arguments: ["-", "/dev/stdin"])
    func `what a pipe gives piece by piece is sent piece by piece`(name: String) throws {
        let output = try python(
            """
            server, url = silent_server()
            sender = fetch('-sH', 'Expect:', '-T', '\(name)', url, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            client, _ = server.accept()
            got = b''
            def wait_for(text):
                global got
                while text not in got: got += receive(client)
            wait_for(b'\\r\\n\\r\\n')
            for piece in (b'one', b'two'):
                sender.stdin.write(piece)
                sender.stdin.flush()
                wait_for(b'3\\r\\n' + piece + b'\\r\\n')
            sender.stdin.close()
            wait_for(b'\\r\\n0\\r\\n\\r\\n')
            client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
            print(sender.stdout.read().decode(), sender.wait())
            """)
        #expect(output == "ok 0")
    }

    @Test func `a file that is standard input is sent from where it stands, after a redirect too`() throws {
        let output = try python(
            """
            import os, tempfile
            server, url = silent_server()
            with tempfile.TemporaryFile() as file:
                file.write(b'a line\\nthe rest')
                file.flush()
                os.lseek(file.fileno(), 7, os.SEEK_SET)
                words = ['-sLH', 'Expect:', '-H', 'Connection: close', '-T', '-', url]
                sender = fetch(*words, stdin=file, stdout=subprocess.DEVNULL)
                for answer in (b'307 Again\\r\\nLocation: /again', b'200 OK'):
                    client, got = accept_request(server, b'\\r\\n0\\r\\n\\r\\n')
                    print(got.split(b'\\r\\n')[-4])
                    respond(client, answer)
            print(sender.wait())
            """)
        #expect(output == "b'the rest'\nb'the rest'\n0")
    }

    @Test func `RFC 3986 2_1 bytes of a Location that are not UTF-8 are requested as they are`() throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sL', url, stdout=subprocess.DEVNULL)
            for answer in (b'302 Found\\r\\nLocation: /caf\\xE9', b'200 OK'):
                client, got = accept_request(server)
                print(got.split()[1].decode())
                respond(client, answer)
            print(run.wait())
            """)
        #expect(output == "/\n/caf%E9\n0")
    }

    @Test func `RFC 6265bis 5_6 a cookie that is not UTF-8 is not sent back in other bytes`() throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sL', '-b', '', url, stdout=subprocess.DEVNULL)
            cookies = b'\\r\\nSet-Cookie: a=b\\r\\nSet-Cookie: c=\\xFC'
            for answer in (b'302 Found\\r\\nLocation: /x' + cookies, b'200 OK'):
                client, got = accept_request(server)
                print([line for line in got.split(b'\\r\\n') if line.startswith(b'Cookie')])
                respond(client, answer)
            print(run.wait())
            """)
        #expect(output == "[]\n[b'Cookie: a=b']\n0")
    }

    @Test func `RFC 7616 3_4 bytes of a challenge that are not UTF-8 go back as they came`() throws {
        let output = try python(
            """
            import hashlib, re
            H = lambda text: hashlib.md5(text).hexdigest().encode()
            server, url = silent_server()
            run = fetch('-s', '--digest', '-u', 'u:p', url, stdout=subprocess.DEVNULL)
            challenge = b'401 No\\r\\nWWW-Authenticate: Digest realm="r\\xFC", nonce="n\\xE9"'
            for answer in (challenge, b'200 OK'):
                client, got = accept_request(server)
                respond(client, answer)
            sent = dict(re.findall(rb'(\\w+)="([^"]*)"', got))
            print(sent[b'realm'] == b'r\\xFC', sent[b'nonce'] == b'n\\xE9')
            print(sent[b'response'] == H(H(b'u:r\\xFC:p') + b':n\\xE9:' + H(b'GET:/')))
            print(run.wait())
            """)
        #expect(output == "True True\nTrue\n0")
    }

    @Test func `RFC 9110 8_8_3 a tag that is not UTF-8 is neither saved nor sent`() throws {
        let output = try python(
            """
            import os, tempfile
            server, url = silent_server()
            folder = tempfile.TemporaryDirectory()
            name = folder.name + '/tag'
            for option in ('--etag-save', '--etag-compare'):
                run = fetch('-s', option, name, url, stdout=subprocess.DEVNULL)
                client, got = accept_request(server)
                print([line for line in got.split(b'\\r\\n') if line.startswith(b'If-')])
                respond(client, b'200 OK\\r\\nETag: "\\xFC"')
                print(run.wait(), os.path.getsize(name))
                with open(name, 'wb') as file: file.write(b'"\\xFC"\\n')
            """)
        #expect(output == "[]\n0 0\n[b'If-None-Match: \"\"']\n0 4")
    }

    @Test func `a file that is standard input is sent again after a challenge`() throws {
        let output = try python(
            """
            import tempfile
            server, url = silent_server()
            with tempfile.TemporaryFile() as file:
                file.write(b'content')
                file.seek(0)
                words = ['-sH', 'Expect:', '--digest', '-u', 'a:b', '-T', '-', url]
                sender = fetch(*words, stdin=file, stdout=subprocess.DEVNULL)
                challenge = b'401 No\\r\\nWWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'
                for answer in (challenge, b'200 OK'):
                    client, got = accept_request(server, b'\\r\\n0\\r\\n\\r\\n')
                    print(got.split(b'\\r\\n')[-4], b'Authorization: Digest' in got)
                    respond(client, answer)
                print(sender.wait())
            """)
        #expect(output == "b'content' False\nb'content' True\n0")
    }

    @Test func `an upload that is continued reads no byte of the file before its offset`() throws {
        let output = try python(
            """
            import tempfile
            server, url = silent_server()
            with tempfile.NamedTemporaryFile() as file:
                file.truncate(3 << 30)
                file.seek(-3, 2)
                file.write(b'end')
                file.flush()
                words = ['-sH', 'Expect:', '-C', str((3 << 30) - 3), '-T', file.name, url]
                sender = fetch(*words, stdout=subprocess.DEVNULL)
                client, got = accept_request(server, b'\\r\\n\\r\\nend')
                client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
                print(sender.wait())
            """)
        #expect(output == "0")
    }

    @Test(arguments: [("SIG_IGN", "143"), ("SIG_DFL", "130")])
    func `a signal ends a transfer, unless it was ignored before`(action: String, status: String) throws {
        let output = try python(
            """
            import signal
            server, url = silent_server()
            run = fetch('-s', url, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.\(action)))
            client, _ = server.accept()
            run.send_signal(signal.SIGINT)
            run.send_signal(signal.SIGTERM)
            print(run.wait())
            """)
        #expect(output == status)
    }

    @Test func `a password is asked for on the terminal, which does not show it`() throws {
        let output = try python(
            """
            import base64, os, pty
            server, url = silent_server()
            process, terminal = pty.fork()
            if process == 0: os.execv(sys.argv[1], [sys.argv[1], 'fetch', '-s', '-u', 'name', url])
            shown = b''
            while b':' not in shown: shown += os.read(terminal, 100)
            os.write(terminal, b'secret\\n')
            client, got = accept_request(server)
            client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
            while b'ok' not in shown: shown += os.read(terminal, 100)
            print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode().split())
            print(base64.b64decode(got.split(b'Authorization: Basic ')[1].split()[0]).decode())
            """)
        #expect(
            output == """
                0 ['Enter', 'host', 'password', 'for', 'user', "'name':", 'ok']
                name:secret
                """)
    }

    @Test func `Ctrl-C ends the wait for a password, and without a terminal there is none`() throws {
        let output = try python(
            """
            import os, pty, signal
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            process, terminal = pty.fork()
            if process == 0: os.execv(sys.argv[1], [sys.argv[1], 'fetch', '-u', 'name', 'http://127.0.0.1:1/'])
            shown = b''
            while b':' not in shown: shown += os.read(terminal, 100)
            os.write(terminal, b'\\x03')
            while b'\\n' not in shown: shown += os.read(terminal, 100)
            print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
            alone = fetch('-u', 'name', 'http://127.0.0.1:1/', stderr=subprocess.PIPE, start_new_session=True)
            print('no terminal' in alone.stderr.read().decode(), alone.wait())
            """)
        #expect(output == "-2\nTrue 2")
    }

    @Test func `a signal at the prompt leaves a terminal that shows what is typed`() throws {
        let output = try python(
            """
            import os, pty, signal, termios
            numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP]
            def is_shown(): return bool(termios.tcgetattr(0)[3] & termios.ECHO)
            def take_terminal():
                os.setpgrp()
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, os.getpid())
                for number in numbers + [signal.SIGTTOU]: signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
            asked, prompted = os.pipe()
            process, terminal = pty.fork()
            if process == 0:
                report = []
                for number in numbers:
                    run = fetch('-u', 'name', 'data:,ok', preexec_fn=take_terminal)
                    os.read(asked, 1)
                    before = is_shown()
                    os.kill(run.pid, number)
                    status = os.waitpid(run.pid, os.WUNTRACED)[1]
                    report += [(before, is_shown(), os.WSTOPSIG(status) if os.WIFSTOPPED(status) else status & 127)]
                os.kill(run.pid, signal.SIGCONT)
                os.read(asked, 1)
                report += [is_shown()]
                os.kill(run.pid, signal.SIGTERM)
                print('report', report, flush=True)
                os._exit(0)
            shown = b''
            for count in range(len(numbers) + 1):
                while shown.count(b"'name':") <= count: shown += os.read(terminal, 4096)
                os.write(prompted, b'.')
            while b'report' not in shown or b']' not in shown: shown += os.read(terminal, 4096)
            print(shown.decode().split('report ')[1].strip())
            os.waitpid(process, 0)
            """)
        #expect(
            output == "[(False, True, 2), (False, True, 15), (False, True, 1), (False, True, 20), False]")
    }

    @Test func `--fail-early ends the transfers that run beside the one that fails`() throws {
        let output = try python(
            """
            server, url = silent_server()
            other, second = silent_server()
            run = fetch('-sZ', '--fail-early', '-w', '%{exitcode}\\n', url, second, stdout=subprocess.PIPE)
            client, _ = server.accept()
            receive(client)
            failing, _ = other.accept()
            receive(failing)
            failing.close()
            print(run.stdout.readline().decode().strip())
            # Where the transfer still runs, this is its response.
            try: client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
            except OSError: pass
            print(run.stdout.read().decode().strip(), run.wait())
            """)
        #expect(output == "52\n42 52")
    }

    @Test func `transfers that a signal ends are interrupted, with --fail-early too`() throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sSZ', '--fail-early', url, url, stderr=subprocess.PIPE)
            clients = [server.accept()[0] for _ in range(2)]
            for client in clients: receive(client)
            run.terminate()
            print(run.stderr.read().decode().count('interrupted'), run.wait())
            """)
        #expect(output == "2 143")
    }

    @Test func `authorities that cannot be read are named as they were given`() throws {
        let output = try python(
            """
            import os
            variables = {**os.environ, 'CURL_CA_BUNDLE': '/no/such.pem'}
            for words in ([], ['--cacert', '/no/other.pem'], ['--capath', '/no/folder']):
                run = fetch(*words, 'https://127.0.0.1:1/', env=variables, stderr=subprocess.PIPE)
                print(run.stderr.read().decode().strip(), run.wait())
            """)
        #expect(
            output == """
                rondo: (77) CURL_CA_BUNDLE: cannot read /no/such.pem: No such file or directory 77
                rondo: (77) --cacert: cannot read /no/other.pem: No such file or directory 77
                rondo: (77) --capath: cannot read /no/folder: No such file or directory 77
                """)
    }

    @Test func `a list and a folder that the library cannot read are named as they were given`() throws {
        let output = try python(
            """
            server, url = silent_server()
            for words in (['--crlfile', '/no/list'], ['--capath', '/dev/null']):
                run = fetch(*words, url.replace('http', 'https'), stderr=subprocess.PIPE)
                print(run.stderr.read().decode().strip(), run.wait())
            """)
        #expect(
            output == """
                rondo: (82) --crlfile: /no/list cannot be read: No such file or directory (ENOENT) 82
                rondo: (77) --capath: /dev/null cannot be read: Permission denied (EACCES) 77
                """)
    }

    @Test func `a key and a proxy that cannot be used are named as they were given`() throws {
        let output = try python(
            """
            import os
            for variables, words in (
                ({}, ['-E', '/dev/null', '--key', '/no/key', 'https://127.0.0.1:1/']),
                ({}, ['-E', '/no/chain', '--key', '/no/key', 'https://127.0.0.1:1/']),
                ({}, ['-x', 'garbage://', 'http://127.0.0.1:1/']),
                ({}, ['--socks4', 'h:x', 'http://127.0.0.1:1/']),
                ({}, ['--socks5', 'ftp://h', 'http://127.0.0.1:1/']),
                ({'http_proxy': 'garbage://'}, ['http://127.0.0.1:1/']),
            ):
                direct = {'no_proxy': '', 'NO_PROXY': ''}
                run = fetch(*words, env={**os.environ, **direct, **variables}, stderr=subprocess.PIPE)
                print(run.stderr.read().decode().strip(), run.wait())
            """)
        #expect(
            output == """
                rondo: (58) --key: “/no/key” cannot be read: No such file or directory (ENOENT) 58
                rondo: (58) --cert: “/no/chain” cannot be read: No such file or directory (ENOENT) 58
                rondo: (5) -x: this is no proxy of HTTP or SOCKS at a host and port: garbage:// 5
                rondo: (5) --socks4: this is no proxy of HTTP or SOCKS at a host and port: h:x 5
                rondo: (7) --socks5: this is no proxy of HTTP or SOCKS at a host and port: ftp://h 7
                rondo: (5) http_proxy: this is no proxy of HTTP or SOCKS at a host and port: garbage:// 5
                """)
    }

    @Test func `TLS with a proxy that fails advises the options for the proxy`() throws {
        let certificates = TestCertificates.shared
        let output = try python(
            """
            import ssl
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain('\(certificates.path(.good))', '\(certificates.keyPath)')
            server, url = silent_server()
            proxy = ['-x', url.rstrip('/').replace('http', 'https')]
            trusting = proxy + ['--proxy-cacert', '\(certificates.authorityPath)']
            for words, requirement in ((proxy, ssl.CERT_NONE), (trusting, ssl.CERT_REQUIRED)):
                context.verify_mode = requirement
                run = fetch('-sS', *words, 'https://host.invalid/', stderr=subprocess.PIPE)
                client, _ = server.accept()
                # Open until the tool has read the alert.
                kept = client.dup()
                try: context.wrap_socket(client, server_side=True)
                except OSError: pass
                text = run.stderr.read().decode()
                print([word for word in ('--proxy-cacert', '(--proxy-cert)') if word in text], run.wait())
            unusable = fetch('-sS', *proxy, '--proxy-cacert', '/dev/null', 'https://host.invalid/',
                             stderr=subprocess.PIPE)
            print('cannot be used: --proxy-cacert: /dev/null' in unusable.stderr.read().decode(), unusable.wait())
            """)
        #expect(output == "['--proxy-cacert'] 60\n['(--proxy-cert)'] 35\nTrue 77")
    }

    @Test func `http_connect is the status of the tunnel, whatever becomes of TLS behind it`() throws {
        let certificates = TestCertificates.shared
        let output = try python(
            """
            import ssl
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain('\(certificates.path(.good))', '\(certificates.keyPath)')
            server, url = silent_server()
            place = url[len('http://'):].rstrip('/')
            def fetch_by(scheme, *words):
                run = fetch('-s', '-w', '%{http_connect}', '-x', scheme + '://' + place, *words,
                            'https://host.invalid/', stdout=subprocess.PIPE)
                return run, server.accept()[0]
            def answer(client, status):
                got = b''
                while not got.endswith(b'\\r\\n\\r\\n'): got += receive(client)
                client.sendall(b'HTTP/1.1 ' + status + b'\\r\\n\\r\\n')
            def secured(client):
                try: return context.wrap_socket(client, server_side=True)
                except OSError: return None
            codes = []
            for scheme, words in (('http', ()), ('https', ('--proxy-insecure',))):
                for status in (b'200 OK', b'403 No'):
                    run, client = fetch_by(scheme, *words)
                    if scheme == 'https': client = secured(client)
                    answer(client, status)
                    client.close()
                    codes += [run.stdout.read().decode()]
                    run.wait()
            # Certificates that are not trusted: the server's behind the tunnel, and the proxy's.
            run, client = fetch_by('http')
            answer(client, b'200 OK')
            secured(client)
            codes += [run.stdout.read().decode()]
            run.wait()
            run, client = fetch_by('https')
            secured(client)
            codes += [run.stdout.read().decode()]
            run.wait()
            # A reply of SOCKS is no status: 255, no method is acceptable.
            run, client = fetch_by('socks5h')
            receive(client)
            client.sendall(b'\\x05\\xff')
            codes += [run.stdout.read().decode()]
            run.wait()
            print(*codes)
            """)
        #expect(output == "200 403 200 403 200 000 000")
    }

    @Test func `a proxy that wants a password, and one that is silent, are named`() throws {
        let output = try python(
            """
            server, url = silent_server()
            proxy, port = ['-sS', '-x', url.rstrip('/')], str(server.getsockname()[1])
            for words in (['https://h.invalid/'], ['-U', 'a:b', 'https://h.invalid/'], ['-f', 'http://h.invalid/']):
                run = fetch(*proxy, *words, stderr=subprocess.PIPE)
                client, _ = accept_request(server)
                respond(client, b'407 Who\\r\\nProxy-Authenticate: Basic realm="r"')
                print(run.stderr.read().decode().strip().replace(port, 'PORT'), run.wait())
            run = fetch(*proxy, '-m', '0.1', 'https://h.invalid/', stderr=subprocess.PIPE)
            print(run.stderr.read().decode().strip().replace(port, 'PORT'), run.wait())
            """)
        let refusal = "rondo: (56) the proxy 127.0.0.1, port PORT, makes no tunnel to h.invalid: it"
        #expect(
            output == """
                \(refusal) wants a user name and password (407; -U) 56
                \(refusal) does not accept the user name and password (407; -U) 56
                rondo: (22) http://h.invalid/: the proxy answered 407 (-U) 22
                rondo: (28) h.invalid, through the proxy 127.0.0.1, port PORT: not finished within the 0.1 s of \
                --max-time; 0 bytes had come 28
                """)
    }

    @Test func `the rest of a file overwrites none that has the suggested name`() throws {
        let output = try python(
            """
            import tempfile
            server, url = silent_server()
            with tempfile.TemporaryDirectory() as folder:
                with open(folder + '/named', 'w') as file: file.write('begin')
                run = fetch('-sOJ', '-C', '5', '--clobber', '--output-dir', folder, url + 'x')
                client, _ = server.accept()
                receive(client)
                client.sendall(b'HTTP/1.1 206 Part\\r\\nContent-Range: bytes 5-8/9\\r\\nContent-Length: 4\\r\\n'
                               b'Content-Disposition: attachment; filename=named\\r\\n\\r\\nrest')
                print(run.wait(), open(folder + '/named').read())
            """)
        #expect(output == "23 begin")
    }

    @Test(arguments: [
        ("'foo://x'", 1), ("'-D', '/dev/null/heads', url", 23),
        ("'--cacert', '/dev/null/authorities', url.replace('http', 'https')", 77),
    ])
    func `a transfer that cannot begin ends at once, with --retry-all-errors too`(
        words: String, status: Int
    ) throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sS', '--retry', '1', '--retry-all-errors', \(words), stderr=subprocess.PIPE)
            print(run.stderr.read().decode().count('rondo: ('), run.wait())
            """)
        #expect(output == "1 \(status)")
    }

    @Test func `an argument that is not UTF-8 is refused, and not changed`() throws {
        let output = try python(
            """
            for words in (['fetch', '-d', b'\\xe9', 'http://127.0.0.1:1/'], ['serve', b'/tmp/caf\\xe9']):
                run = subprocess.run([sys.argv[1]] + words, stdin=subprocess.DEVNULL, capture_output=True)
                print(run.returncode, run.stderr.decode().strip())
            """)
        #expect(
            output == """
                2 rondo: argument 3 is not UTF-8, as it has to be
                2 rondo: argument 2 is not UTF-8, as it has to be
                """)
    }

    @Test func `output that cannot be written is a failure`() throws {
        let output = try python(
            """
            for words in (['--events'], ['-w', 'done', '-o', '/dev/null']):
                full = open('/dev/full', 'w')
                run = fetch(*words, 'data:,text', stdout=full, stderr=subprocess.PIPE)
                print(run.stderr.read().decode().strip())
                print(run.wait())
            """)
        let message = "rondo: (23) cannot write to standard output: No space left on device\n23"
        #expect(output == "\(message)\n\(message)")
    }

    @Test func `a load ends when nobody reads its events any more`() throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('--events', url, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            client, _ = server.accept()
            run.stdout.close()
            client.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nthe rest never comes')
            print(run.wait())
            """)
        #expect(output == "23")
    }

    @Test(arguments: [
        ("200 OK", "['-z', 'Fri, 01 Jan 2021 00:00:00 GMT']"),
        ("416 Range Not Satisfiable", "['-C', '100', '-o', '/dev/null']"),
        ("200 OK", "['-I', '-X', 'GET', '-o', '/dev/null']"),
    ])
    func `an unwanted body without an end is not read`(_ status: String, _ options: String) throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-s', *\(options), url)
            client, _ = server.accept()
            client.sendall(b'HTTP/1.1 \(status)\\r\\nLast-Modified: Wed, 01 Jan 2020 00:00:00 GMT\\r\\n\\r\\n')
            try:
                while True: client.sendall(b'x' * 65536)
            except OSError: print(run.wait())
            """)
        #expect(output == "0")
    }

    @Test
    func `an unwanted body that is short as it is sent leaves its connection, however long it is decoded`()
        throws
    {
        let output = try python(
            """
            import gzip
            server, url = silent_server()
            run = fetch('-sf', '--compressed', url, url)
            client, _ = server.accept()
            body = gzip.compress(b'x' * 1000000)
            for _ in range(2):
                receive(client)
                client.sendall(b'HTTP/1.1 404 None\\r\\nContent-Encoding: gzip\\r\\n'
                               b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
            print(run.wait())
            """)
        #expect(output == "22")
    }

    @Test(arguments: [
        ("1.0", "", "moved"), ("1.1", "", "moved"), ("1.1", "Connection: close\\r\\n", "moved"),
        ("1.1", "Connection: close\\r\\nTransfer-Encoding: chunked\\r\\n", "5\\r\\nmoved\\r\\n"),
    ])
    func `a redirect is followed before its body ends, if that is the end of the connection`(
        version: String, fields: String, body: String
    ) throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sL', url, stdout=subprocess.PIPE)
            first, _ = server.accept()
            receive(first)
            first.sendall(b'HTTP/\(version) 302 Found\\r\\nLocation: /next\\r\\n\(fields)\\r\\n\(body)')
            second, _ = server.accept()
            first.close()
            print(receive(second).split()[1].decode())
            second.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
            print(run.stdout.read().decode(), run.wait())
            """)
        #expect(output == "/next\nok 0")
    }

    @Test func `the body of a redirect that does not end in 64 KiB is not waited for`() throws {
        let output = try python(
            """
            server, url = silent_server()
            run = fetch('-sL', url, stdout=subprocess.PIPE)
            first, _ = server.accept()
            receive(first)
            first.sendall(b'HTTP/1.1 302 Found\\r\\nLocation: /next\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
            try:
                while True: first.sendall(b'1000\\r\\n' + b'x' * 4096 + b'\\r\\n')
            except OSError: pass
            second, _ = server.accept()
            receive(second)
            second.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
            print(run.stdout.read().decode(), run.wait())
            """)
        #expect(output == "ok 0")
    }

    @Test func `-y is not for connections that are slow to open`() throws {
        let output = try python(
            """
            # A server that does not answer the handshake of TLS.
            server, url = silent_server()
            run = fetch('-sS', '-y', '1', '-m', '2.5', 'https' + url[4:], stderr=subprocess.PIPE)
            print('--max-time' in run.stderr.read().decode(), run.wait())
            """)
        #expect(output == "True 28")
    }

    @Test func `an upload that goes on for longer than -y is not slow`() throws {
        let output = try python(
            """
            import time
            server, url = silent_server()
            words = ['-sH', 'Expect:', '-Y', '1', '-y', '1', '-T', '-', url]
            sender = fetch(*words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            client, _ = server.accept()
            end = time.monotonic() + 2.5
            while time.monotonic() < end and sender.poll() is None:
                sender.stdin.write(b'x' * 1000)
                sender.stdin.flush()
                client.recv(65536)
            sender.stdin.close()
            client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
            print(sender.wait())
            """)
        #expect(output == "0")
    }
}

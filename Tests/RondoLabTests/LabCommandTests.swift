import Foundation
import RondoLab
import RondoTestSupport
import RondoTrace
import Testing

/// `rondo lab`, as a process, and errors that it shares with `rondo trace`.
struct LabCommandTests {
    @Test func `the list names every experiment`() throws {
        let lines = try Tool.run(["lab", "list"]).split(separator: "\n")
        #expect(lines.count == Experiment.all.count)
        for (line, experiment) in zip(lines, Experiment.all) {
            #expect(line.hasPrefix(experiment.name + " "))
        }
    }

    @Test func `a run prints question, timeline, outcome, explanation and code`() throws {
        try withFile { page in
            let output = try Tool.run(["lab", "run", "timer-modes", "--code", "--html", page])
            for part in [
                "Two timers repeat", "run loop of lab", "What was seen", "Why", "scheduledTimer",
                "as documented",
            ] {
                #expect(output.contains(part), "\(part)")
            }
            // Plain, where it is no terminal.
            #expect(!output.contains("\u{1B}"))
            #expect(try String(contentsOfFile: page, encoding: .utf8).hasPrefix("<!doctype html>"))
        }
    }

    @Test func `a run can write Chrome's trace events`() throws {
        try withFile { file in
            _ = try Tool.run(["lab", "run", "anatomy-of-a-pass", "--json", file])
            let data = try Data(contentsOf: URL(fileURLWithPath: file))
            let object = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
            #expect((object["traceEvents"] as? [Any])?.isEmpty == false)
        }
    }

    @Test func `the recording of a run can go to standard output`() throws {
        try withFile { folder in
            let script = """
                import os, subprocess, sys
                rondo, folder = sys.argv[1:3]
                os.mkdir(folder)
                ended = subprocess.run([rondo, 'lab', 'run', 'timer-modes', '--save', '-'], cwd=folder,
                                       capture_output=True)
                print(ended.stdout.startswith(b'RONDOTR1'), b'What was seen' in ended.stderr, os.listdir(folder))
                for name in os.listdir(folder): os.remove(os.path.join(folder, name))
                os.rmdir(folder)
                """
            let output = try Tool.python(script, [folder])
            #expect(output == "True True []")
        }
    }

    @Test func `lab serve serves on after more connections than it may have descriptors`() throws {
        let script = """
            import os, resource, socket, subprocess, sys, time
            count, limit = 16, time.monotonic() + 20
            server = subprocess.Popen([sys.argv[1], 'lab', 'serve'], stdout=subprocess.PIPE, text=True,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count)))
            try:
                port = int(server.stdout.readline().rsplit(':')[-1])
                connect = lambda: socket.create_connection(('127.0.0.1', port), 30)
                clients = [connect() for _ in range(2 * count)]
                used = lambda: len(os.listdir('/proc/%d/fd' % server.pid))
                while used() < count and time.monotonic() < limit: time.sleep(0.01)
                print(used() == count)
                for client in clients: client.close()
                client = connect()
                client.sendall(b'GET /drip/1/5/0 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
                got = b''
                while more := client.recv(4096): got += more
                print(got.endswith(b'rrrrr'))
            finally:
                server.kill()
            """
        #expect(try Tool.python(script) == "True\nTrue")
    }

    @Test func `an unknown experiment is an invalid command line, and so is a quiz without an answer`() {
        #expect(throws: (any Error).self) { try Tool.run(["lab", "run", "no-such-thing"]) }
        #expect(throws: (any Error).self) { try Tool.run(["lab", "run", "timer-modes", "--quiz"]) }
    }

    @Test func `trace and lab run nothing if their result cannot be written`() throws {
        try withFile { mark in
            let missing = "/no/such/folder/page.html"
            for arguments in [
                ["trace", "--html", missing, "--", "touch", mark],
                ["trace", "--json", "/tmp", "--", "touch", mark],
                ["lab", "run", "timer-modes", "--save", missing], ["lab", "report", "--output", missing],
            ] {
                let script =
                    "import subprocess, sys; ended = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
                    + "print(ended.returncode, ended.stdout + ended.stderr)"
                let output = try Tool.python(script, arguments)
                let path = try #require(arguments.first { $0.hasPrefix("/") })
                let reason = path == "/tmp" ? "it is a folder" : "/no/such/folder: No such file or directory"
                #expect(output == "1 rondo: cannot write \(path): \(reason)\n")
            }
            #expect(!FileManager.default.fileExists(atPath: mark))
        }
    }

    @Test func `an error names a file that cannot be written or is no recording`() {
        #expect(throws: (any Error).self) {
            try Tool.run(["lab", "run", "timer-modes", "--html", "/no/such/folder/page.html"])
        }
        #expect(throws: (any Error).self) { try Tool.run(["trace", "--from", "/etc/passwd"]) }
        #expect(throws: (any Error).self) { try Tool.run(["trace"]) }
    }
}

import Foundation
import RondoLab
import RondoTestSupport
import RondoTrace
import Testing

/// `rondo trace`, as a process.
struct TraceCommandTests {
    @Test func `a program is recorded without changing it`() throws {
        try withFile { file in
            let path = try BuiltFiles.command
            // The program that is recorded is another experiment, which has a recorder of its own besides.
            let output = try Tool.run([
                "trace", "--json", file, "--", path, "serve", "--size", "1", "--until-stdin-closes",
            ])
            #expect(output.contains("listening"))
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains("traceEvents"))
        }
    }

    @Test func `RONDO_TRACE records from the first loop to the last, and no child process`() throws {
        try withFile { file in
            _ = try TestServerProcess.run([
                "env", "RONDO_TRACE=\(file)", try BuiltFiles.command, "demo", "--json", "--size", "200k",
                "--rate", "400k", "--span", "0.1",
            ])
            let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
            let calls = recording.records.filter {
                $0.kind == .delegate && recording.name($0) == "didReceive data"
            }
            #expect(!calls.isEmpty && calls.allSatisfy { recording.threadName($0.thread) == "main" })
            // Connections without a label are known by host and path.
            // (The background loop has one more, by which the end of the server's process is found.)
            let sources = recording.records.filter {
                $0.kind == .descriptorSource && recording.threadName($0.thread) == "main"
            }
            #expect(!sources.isEmpty && sources.allSatisfy { recording.label($0) == "127.0.0.1/bytes" })
            let ends = recording.records.filter { recording.name($0) == "connectionDidFinishLoading" }
            #expect(ends.count == 2)
            let modes = Set(
                recording.activations.map {
                    recording.modeName(TraceRecord(kind: .entry, began: 0, mode: $0.mode))
                })
            #expect(modes.isSuperset(of: ["default", "tracking"]))
            // A loop of Rondo's own may still run when the program ends.
            let own = recording.activations.filter { recording.loopName($0.loop) == "main" }
            #expect(!own.isEmpty && own.allSatisfy { $0.result != nil })
        }
    }

    /// It waits for the signal in a thread. The recorder's threads are there before `main` can block the signal.
    @Test func `a program that handles a signal itself does so when it is recorded`() throws {
        try withFile { file in
            let script = """
                import os, signal, subprocess, sys
                rondo, file = sys.argv[1:3]
                for more in [{}, {'RONDO_TRACE': file}]:
                    server = subprocess.Popen([rondo, 'serve', '--size', '1'], env={**os.environ, **more},
                                              stdout=subprocess.PIPE, text=True)
                    server.stdout.readline()
                    server.send_signal(signal.SIGTERM)
                    print(server.wait())
                """
            let output = try Tool.python(script, [file])
            #expect(output == "0\n0")
            // The last of all frames says that the recording is complete; it has 16 bytes, and 4 for their number.
            let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
            #expect(bytes.dropLast(20).last == UInt8(ascii: "Z"))
        }
    }

    /// The caller would have it write a file of the caller's choice, with rights that the caller does not have.
    @Test(.enabled(if: geteuid() == 0, "only root can give a program another user's rights"))
    func `a set-user-ID program is not recorded`() throws {
        try withFile { file in
            let program = file + "-of-another-user"
            defer { unlink(program) }
            let script = """
                import os, shutil, subprocess, sys
                rondo, program, file = sys.argv[1:4]
                def run(original, option, **more):
                    if os.path.exists(program): os.remove(program)
                    shutil.copy(original, program)
                    os.chown(program, 65534, 65534)
                    os.chmod(program, 0o4755)
                    return subprocess.run([os.path.basename(original), option], executable=program,
                                          env={**os.environ, **more}, capture_output=True)
                if run(shutil.which('id'), '-u').stdout != b'65534\\n':
                    print('no program gets the rights of another user here')
                elif run(rondo, '--version').returncode != 0:
                    print('the other user cannot load the libraries')
                else:
                    print(run(rondo, '--version', RONDO_TRACE=file).returncode, os.path.exists(file))
                """
            let output = try Tool.python(script, [program, file])
            // Where it cannot be tried, as in a folder that is mounted so, or with a toolchain that only root may read.
            if output.hasPrefix("no program") || output.hasPrefix("the other user") { return }
            #expect(output == "0 False")
        }
    }

    @Test func `of two programs with one file for their recordings the first one is recorded`() throws {
        try withFile { file in
            let script = """
                import os, subprocess, sys
                rondo, file = sys.argv[1:3]
                def server():
                    return subprocess.Popen(
                        [rondo, 'serve', '--size', '1', '--until-stdin-closes'],
                        env={**os.environ, 'RONDO_TRACE': file},
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                first = server()
                first.stdout.readline()
                second = server()
                print(second.communicate()[1].strip().replace(file, 'FILE'), second.returncode)
                print(first.communicate()[1].strip(), first.returncode)
                """
            let output = try Tool.python(script, [file])
            #expect(
                output
                    == "rondo: RONDO_TRACE: cannot write FILE: another program is being recorded into it 0\n 0"
            )
            let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
            #expect(recording.activations.contains { recording.loopName($0.loop) == "main" })
        }
    }

    @Test func `a recording that cannot be written says so, and so does one that breaks off`() throws {
        try withFile { file in
            let full = try TestServerProcess.run([
                "env", "RONDO_TRACE=/dev/full", try BuiltFiles.command, "--version",
            ])
            let said = "rondo: RONDO_TRACE: cannot write /dev/full: No space left on device"
            #expect(full.split(separator: "\n").filter { $0.hasPrefix("rondo: ") } == [said[...]])

            let bytes = RecordingMaker.sample.file
            let words = "rondo: \(file) breaks off: its program was killed, still runs, or could not write on"
            for (length, isComplete) in [(bytes.count, true), (bytes.count - 1, false)] {
                try Data(bytes.prefix(length)).write(to: URL(fileURLWithPath: file))
                let output = try Tool.run(["trace", "--from", file])
                #expect(output.contains("run loop of worker"))
                #expect(output.contains(words) == !isComplete)
            }
        }
    }

    @Test func `of a program that is killed while it is recorded it is said that the recording breaks off`()
        throws
    {
        let script = """
            import subprocess, sys
            rondo, probe = sys.argv[1:3]
            ended = subprocess.run([rondo, 'trace', '--', probe, 'killed'], stderr=subprocess.PIPE, text=True)
            print(ended.returncode, ended.stderr.replace(probe, 'PROBE').splitlines()[0])
            """
        let output = try Tool.python(script, [BuiltFiles.path("RondoMainLoopProbe")])
        #expect(
            output == """
                137 rondo: the recording of PROBE breaks off: its program was killed, still runs, or could not write on
                """)
    }

    @Test func `of a program that runs no loop it is said, and what it has scheduled`() throws {
        let scheduled = try Tool.run(["trace", "--", BuiltFiles.path("RondoMainLoopProbe"), "left"])
        let words = """
            rondo: no run loop has begun a pass, so that nothing was called of what was added: “tick” in default of main, \
            “tick” in the common modes of main, a member without a label in default of main, a block in default of main; \
            have the thread run its loop in such a mode, as by RunLoop.current.run() in default
            """
        #expect(scheduled.contains(words))
        let other = try Tool.run(["trace", "--", BuiltFiles.command, "--version"])
        #expect(other.contains("rondo: no run loop has begun a pass, and nothing was added to one"))
        try withFile { file in
            try Data(RecordingMaker.sample.file).write(to: URL(fileURLWithPath: file))
            #expect(try !Tool.run(["trace", "--from", file]).contains("no run loop"))
        }
    }

    @Test func `of a program that was killed while it renamed its file the earlier one is read`() throws {
        try withFile { file in
            defer { unlink(file + ".1") }
            try Data(RecordingMaker.sample.file).write(to: URL(fileURLWithPath: file + ".1"))
            for isMissing in [true, false] {
                if !isMissing { try Data().write(to: URL(fileURLWithPath: file)) }
                let output = try Tool.run(["trace", "--from", file])
                #expect(output.contains("rondo: there is nothing in \(file): "))
                #expect(output.contains("run loop of worker"))
            }
        }
    }

    @Test func `the timeline of a file is on standard output, that of a program on standard error`() throws {
        try withFile { file in
            try Data(RecordingMaker.sample.file).write(to: URL(fileURLWithPath: file))
            let script = """
                import subprocess, sys
                rondo, file = sys.argv[1:3]
                for words in [['--from', file], ['--', rondo, 'lab', 'run', 'timer-modes']]:
                    ended = subprocess.run([rondo, 'trace'] + words, capture_output=True)
                    print(ended.returncode, [b'ready, not deliverable' in text and text.count(b'run loop of') > 0
                                             for text in (ended.stdout, ended.stderr)])
                with open('/dev/full', 'w') as full:
                    ended = subprocess.run([rondo, 'trace', '--from', file], stdout=full, stderr=subprocess.PIPE)
                print(ended.returncode, ended.stderr.decode().strip())
                """
            let output = try Tool.python(script, [file])
            #expect(
                output == """
                    0 [True, False]
                    0 [True, True]
                    1 rondo: cannot write to standard output: No space left on device
                    """)
        }
    }

    /// The constructor finds the function that begins to record by a weak symbol, which must not need a symbol table.
    @Test func `a program without symbols can be recorded`() throws {
        try withFile { file in
            let program = file + "-stripped"
            defer { unlink(program) }
            _ = try TestServerProcess.run(["strip", "-o", program, try BuiltFiles.command])
            // LeakSanitizer, where it watches, knows by symbols what is no leak.
            _ = try TestServerProcess.run([
                "env", "RONDO_TRACE=\(file)", "ASAN_OPTIONS=detect_leaks=0", program, "demo", "--json",
                "--size", "200k", "--rate", "400k", "--span", "0.1",
            ])
            let recording = try Recording(file: Array(Data(contentsOf: URL(fileURLWithPath: file))))
            #expect(recording.activations.contains { recording.loopName($0.loop) == "main" })
        }
    }

    /// Python opens the terminal and types; the program that is traced is a shell, which starts one that uses Rondo.
    @Test func `a traced program can read from the terminal, and Ctrl-C ends it`() throws {
        let script = """
            import os, pty, sys
            rondo, command = sys.argv[1:3]
            child, terminal = pty.fork()
            if child == 0:
                os.execv(rondo, [rondo, 'trace', '--', 'sh', '-c', command, rondo])
            seen = b''
            def wait(words):
                global seen
                while words not in seen:
                    try:
                        more = os.read(terminal, 4096)
                    except OSError:
                        more = b''
                    if not more:
                        break
                    seen += more
                return words in seen
            print('asks', wait(b'name?'))
            os.write(terminal, b'Ada\\n')
            print('greets', wait(b'hello, Ada'))
            os.write(terminal, b'\\x03')
            print('shows', wait(b'run loop of lab'))
            wait(b'never printed')
            print('status', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            """
        // `exec` at the end: what the terminal interrupts is the program itself.
        let command = """
            "$0" lab run timer-modes > /dev/null; printf 'name? '; read name; printf 'hello, %s ' "$name"; exec cat
            """
        let output = try Tool.python(script, [command])
        #expect(output == "asks True\ngreets True\nshows True\nstatus 130")
    }

    @Test func `a traced program has the bytes of its arguments and variables as they were given`() throws {
        let script = """
            import os, subprocess, sys
            script = 'printf %s "$1$NAME" | od -An -tx1 >&2; env | grep -c ^RONDO_TRACE= >&2'
            ended = subprocess.run([sys.argv[1], 'trace', '--', 'sh', '-c', script, 'sh', b'caf\\xe9'],
                                   env={**os.environb, b'NAME': b'\\xff='}, stderr=subprocess.PIPE, text=True)
            print(ended.stderr.split('rondo:')[0].split())
            """
        let output = try Tool.python(script)
        #expect(output == "['63', '61', '66', 'e9', 'ff', '3d', '1']")
    }

    @Test func `a file to write to may have a name of one character`() throws {
        try withFile { folder in
            let script = """
                import os, shutil, subprocess, sys
                rondo, folder = sys.argv[1:3]
                os.mkdir(folder)
                for words in [['--json', 'x'], ['--html', folder + '/y']]:
                    ended = subprocess.run([rondo, 'trace'] + words + ['--', rondo, '--version'], cwd=folder,
                                           capture_output=True)
                    print(ended.returncode)
                print(sorted(os.listdir(folder)))
                shutil.rmtree(folder)
                """
            let output = try Tool.python(script, [folder])
            #expect(output == "0\n0\n['x', 'y']")
        }
    }

    @Test func `a recording that cannot be read says why`() throws {
        let script = """
            import subprocess, sys
            for path in ['/dev/null', '/', '/no/such/file']:
                ended = subprocess.run([sys.argv[1], 'trace', '--from', path], stderr=subprocess.PIPE, text=True)
                print(ended.stderr.strip())
            """
        #expect(
            try Tool.python(script) == """
                rondo: cannot read /dev/null: it is not a regular file
                rondo: cannot read /: it is not a regular file
                rondo: cannot read /no/such/file: No such file or directory
                """)
    }

    @Test func `trace exits with the status that a shell reports for the program's end`() throws {
        let script = """
            import subprocess, sys
            rondo = sys.argv[1]
            for command in [['sh', '-c', 'exit 7'], ['sh', '-c', 'kill -9 $$'], ['/no/such/program'], ['/etc/passwd']]:
                ended = subprocess.run([rondo, 'trace', '--'] + command, stderr=subprocess.PIPE, text=True)
                print(ended.returncode, ended.stderr.strip())
            """
        let output = try Tool.python(script)
        #expect(
            output == """
                7 rondo: sh: nothing was recorded: perhaps it does not use Rondo, asked for no loop, or ran without RONDO_TRACE
                137 rondo: sh: nothing was recorded: perhaps it does not use Rondo, asked for no loop, or ran without RONDO_TRACE
                127 rondo: /no/such/program: there is no such program
                126 rondo: /etc/passwd cannot be run: Permission denied
                """)
    }

    @Test func `a recording whose picture cannot be written is kept, and the program's status too`() throws {
        try withFile { folder in
            // The folder for the picture is there when the program begins, and gone when it ends.
            let script = """
                import os, shutil, subprocess, sys
                rondo, folder = sys.argv[1:3]
                os.mkdir(folder)
                command = ['sh', '-c', '"$0" --version; rmdir "$1"; exit 7', rondo, folder]
                ended = subprocess.run([rondo, 'trace', '--json', folder + '/trace.json', '--'] + command,
                                       capture_output=True, text=True)
                first, second = ended.stderr.strip().split('\\n')
                print(ended.returncode, first.startswith('rondo: cannot write ' + folder))
                file = second.split()[-1]
                print(subprocess.run([rondo, 'trace', '--from', file], capture_output=True).returncode)
                shutil.rmtree(os.path.dirname(file))
                """
            let output = try Tool.python(script, [folder])
            #expect(output == "7 True\n0")
        }
    }

    @Test func `a recording whose reader has gone away is kept, and the program's status too`() throws {
        try withFile { folder in
            let script = """
                import os, shutil, subprocess, sys
                rondo, folder = sys.argv[1:3]
                os.mkdir(folder)
                reader, writer = os.pipe()
                os.close(reader)
                command = ['sh', '-c', '"$0" --version > /dev/null; exit 7', rondo]
                ended = subprocess.run([rondo, 'trace', '--json', '-', '--'] + command, stdout=writer,
                                       stderr=subprocess.PIPE, text=True, env={**os.environ, 'TMPDIR': folder})
                print(ended.returncode)
                first, second = ended.stderr.strip().split('\\n')
                print(first)
                file = second.split()[-1]
                print(len(os.listdir(folder)), os.path.exists(file))
                print(subprocess.run([rondo, 'trace', '--from', file], capture_output=True).returncode)
                shutil.rmtree(folder)
                """
            let output = try Tool.python(script, [folder])
            #expect(output == "7\nrondo: cannot write to standard output: Broken pipe\n1 True\n0")
        }
    }

    /// The beginning of scripts in which the result of `rondo trace` goes into a pipe that is full, so that it waits there.
    private static let intoFullPipe = """
        import json, os, shutil, signal, subprocess, sys, time
        rondo, folder = sys.argv[1:3]
        os.mkdir(folder)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True: os.write(writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(writer, True)

        def start(command):
            trace = subprocess.Popen([rondo, 'trace', '--json', '-', '--'] + command, stdout=writer,
                                     stderr=subprocess.PIPE, text=True, env={**os.environ, 'TMPDIR': folder})
            return trace, int(trace.stderr.readline())

        def wait(what, holds):
            limit = time.monotonic() + 25
            while not holds():
                if time.monotonic() > limit: sys.exit('waited in vain for ' + what)
                time.sleep(0.01)

        def wait_for_end(program):
            # Until trace has taken note of it, too: until then a zombie is left.
            wait('the end of the traced program', lambda: not os.path.exists('/proc/%d' % program))


        """

    /// The result goes into a pipe that is full, and is never read.
    @Test func `a signal after the end of the traced program ends trace, and the recording is kept`() throws {
        try withFile { folder in
            let script = """
                for number in [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT]:
                    # A shell's background has some of them ignored.
                    signal.signal(number, signal.SIG_DFL)
                    command = ['sh', '-c', '"$0" --version > /dev/null; echo $$ >&2', rondo]
                    trace, program = start(command)
                    wait_for_end(program)
                    trace.send_signal(number)
                    words = trace.communicate()[1].strip()
                    print(trace.returncode, words.startswith('rondo: the recording is kept'),
                          os.path.getsize(words.split()[-1]) > 0)
                shutil.rmtree(folder)
                """
            let output = try Tool.python(Self.intoFullPipe + script, [folder])
            #expect(output == "143 True True\n129 True True\n130 True True\n131 True True")
        }
    }

    /// As `timeout` does. The result goes into a pipe that is full until the second signal was taken.
    @Test func `a signal that comes again after it has ended the traced program does not end trace`() throws {
        try withFile { folder in
            let script = """
                command = ['sh', '-c', '"$0" --version > /dev/null; echo $$ >&2; exec sleep 1000', rondo]
                trace, program = start(command)
                os.close(writer)
                trace.terminate()
                wait_for_end(program)
                os.kill(trace.pid, signal.SIGTERM)
                def is_pending():
                    lines = open('/proc/%d/status' % trace.pid).read().splitlines()
                    return any(int(line.split()[1], 16) & 1 << signal.SIGTERM - 1 for line in lines
                               if line.startswith('ShdPnd'))
                wait('the signal to be taken', lambda: not is_pending())
                with os.fdopen(reader, 'rb') as file: text = file.read().lstrip(bytes(1))
                print('traceEvents' in json.loads(text), 'kept' in trace.communicate()[1], trace.returncode)
                shutil.rmtree(folder)
                """
            let output = try Tool.python(Self.intoFullPipe + script, [folder])
            #expect(output == "True False 143")
        }
    }

    /// The program lives on for longer than the second in which the same signal is taken for the one that was passed on.
    @Test func `a signal long before the end of the traced program keeps no later one from trace`() throws {
        try withFile { folder in
            let script = """
                # A shell's background has it ignored.
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                command = ['sh', '-c', 'trap "sleep 3; exit 0" HUP; "$0" --version > /dev/null; echo $$ >&2; '
                           'while :; do sleep 0.1; done', rondo]
                trace, program = start(command)
                trace.send_signal(signal.SIGHUP)
                wait_for_end(program)
                trace.send_signal(signal.SIGHUP)
                try:
                    words = trace.communicate(timeout=50)[1].strip()
                except subprocess.TimeoutExpired:
                    trace.kill()
                    words = trace.communicate()[1].strip()
                print(trace.returncode, words.startswith('rondo: the recording is kept'))
                shutil.rmtree(folder)
                """
            let output = try Tool.python(Self.intoFullPipe + script, [folder])
            #expect(output == "129 True")
        }
    }
}

// swift-format-ignore-file
// Written by Scripts/listings: change the experiments, then run it.

/// The code of each experiment: the lines that are compiled, copied from their sources.
enum Listings {
    static let all: [String: String] = [
        "cache-policies": #"""
            @Sendable private func cachePoliciesCode(_ stage: Stage) throws {
                let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
                let policies: [(name: String, policy: URLRequest.CachePolicy)] = [
                    ("0 protocol", .useProtocolCachePolicy), ("1 reload", .reloadIgnoringLocalCacheData),
                    ("2 else load", .returnCacheDataElseLoad), ("3 don't load", .returnCacheDataDontLoad),
                    ("4 reload, all", .reloadIgnoringLocalAndRemoteCacheData),
                    ("5 revalidate", .reloadRevalidatingCacheData),
                ]
                func load(_ label: String, _ url: URL, _ policy: URLRequest.CachePolicy) throws -> Reader {
                    let reader = Reader()
                    let load = try URLConnection.labelled(label, URLRequest(url: url, cachePolicy: policy), reader)
                    load.configuration.cache = cache
                    load.start()
                    try stage.run(.current) { reader.isDone }
                    return reader
                }
                for (name, policy) in policies {
                    for (state, age) in [("fresh", 60), ("stale", 0), ("missing", 60)] {
                        // The entry stays fresh for `age` seconds; its Nth version is N bytes long.
                        let url = stage.url("/news/\(age)/\(state)-\(policy.rawValue)")
                        if state != "missing" { _ = try load("to fill the cache", url, .useProtocolCachePolicy) }
                        let before = stage.requests(for: url)

                        let reader = try load(name, url, policy)
                        let asked = stage.requests(for: url).dropFirst(before.count)
                        stage.note("\(name), \(state): requests", asked.count)
                        stage.note("\(name), \(state): version", reader.bytes)
                        if asked.contains("no-cache") { stage.note("\(name), \(state): caches on the way were told", 1) }
                        if reader.errorCode != 0 { stage.note("error", reader.errorCode) }
                    }
                }
            }
            """#,
        "common-modes": #"""
            @Sendable private func commonModesCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let (readA, readB) = (Reader(), Reader())
                let a = try URLConnection.labelled("A, default", stage.url("/drip/30/1000/20"), readA)
                let b = try URLConnection.labelled("B, common", stage.url("/drip/30/1000/20"), readB)
                a.schedule(in: loop, forMode: .default)
                b.schedule(in: loop, forMode: .common)
                a.start()
                b.start()

                try stage.run(loop, .default) { readA.bytes > 0 && readB.bytes > 0 }
                loop.spend(0.25, in: .tracking)  // the user scrolls
                try stage.run(loop, .default) { readA.isDone && readB.isDone }
            }
            """#,
        "delegate-queue": #"""
            @Sendable private func delegateQueueCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                loop.keepAlive(in: .tracking)
                let queue = OperationQueue()
                let reader = Reader()

                let load = try URLConnection.labelled("load", stage.url("/drip/25/1000/20"), reader)
                load.start()  // scheduled here, in the default mode
                load.setDelegateQueue(queue)  // the delegate is called there

                try stage.run(loop, .default) { reader.bytes > 0 }
                loop.spend(0.25, in: .tracking)
                try stage.run(loop, .default) { reader.isDone }
                queue.waitUntilAllOperationsAreFinished()
            }
            """#,
        "late-challenge": #"""
            private final class Patient: NSObject, URLConnectionDataDelegate {
                let stage: Stage
                var challenge: URLAuthenticationChallenge?, isDone = false
                init(_ stage: Stage) { self.stage = stage }

                func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
                    self.challenge = challenge  // return at once: the loop goes on
                }

                func connection(_ connection: URLConnection, didReceive response: URLResponse) {
                    stage.note("status", (response as? HTTPURLResponse)?.statusCode ?? 0)
                }

                func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
            }

            @Sendable private func lateChallengeCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let beat = Timer.scheduledTimer(withTimeInterval: 0.03, repeats: true) { _ in }
                beat.label = "beat"
                let patient = Patient(stage)
                try URLConnection.labelled("load", stage.url("/secret"), patient).start()

                try stage.run(loop) { patient.challenge != nil }
                loop.spend(0.3, in: .default)  // the user types
                stage.note("answered")
                let credential = URLCredential(user: "user", password: "secret", persistence: .none)
                if let challenge = patient.challenge { challenge.sender?.use(credential, for: challenge) }

                try stage.run(loop) { patient.isDone }
                beat.invalidate()
            }
            """#,
        "mixed-replace": #"""
            private final class Viewer: NSObject, URLConnectionDataDelegate {
                let stage: Stage
                var picture = Data(), isDone = false
                init(_ stage: Stage) { self.stage = stage }

                func connection(_ connection: URLConnection, didReceive response: URLResponse) {
                    show()  // the next part ends the picture
                    stage.note("response \(response.mimeType ?? "without a type")")
                    picture = Data()  // the next picture replaces it
                }

                func connection(_ connection: URLConnection, didReceive data: Data) { picture.append(data) }

                func connectionDidFinishLoading(_ connection: URLConnection) {
                    show()  // the last one
                    isDone = true
                }

                private func show() {
                    if !picture.isEmpty { stage.note("bytes of the part", picture.count) }
                }
            }

            @Sendable private func mixedReplaceCode(_ stage: Stage) throws {
                let viewer = Viewer(stage)
                try URLConnection.labelled("camera", stage.url("/camera"), viewer).start()
                try stage.run(.current) { viewer.isDone }
            }
            """#,
        "redirects": #"""
            private final class Redirected: NSObject, URLConnectionDataDelegate, Sendable {
                let name: String, stage: Stage, isDone = Shared(false)
                let answer: @Sendable (URLRequest) -> URLRequest?

                init(_ name: String, _ stage: Stage, answer: @escaping @Sendable (URLRequest) -> URLRequest?) {
                    (self.name, self.stage, self.answer) = (name, stage, answer)
                }

                func connection(_ c: URLConnection, willSend request: URLRequest, redirectResponse: URLResponse?)
                    -> URLRequest?
                {
                    redirectResponse == nil ? request : answer(request)
                }

                func connection(_ connection: URLConnection, didReceive response: URLResponse) {
                    stage.note("\(name): status", (response as? HTTPURLResponse)?.statusCode ?? 0)
                }

                func connectionDidFinishLoading(_ connection: URLConnection) { isDone.value = true }
            }

            @Sendable private func redirectsCode(_ stage: Stage) throws {
                let elsewhere = URLRequest(url: stage.url("/nowhere"))
                let delegates = [
                    Redirected("allowed", stage) { $0 }, Redirected("refused", stage) { _ in nil },
                    Redirected("changed", stage) { _ in elsewhere },
                ]
                for delegate in delegates {
                    try URLConnection.labelled(delegate.name, stage.url("/redirect"), delegate).start()
                }
                try stage.run(RunLoop.current) { delegates.allSatisfy(\.isDone.value) }
            }
            """#,
        "save-a-download": #"""
            private final class Saver: NSObject, URLConnectionDataDelegate, URLDownloadDelegate {
                var take: (Data) -> Void = { _ in }
                var measure: () -> Void = {}
                var isDone = false

                func connection(_ connection: URLConnection, didReceive data: Data) {
                    take(data)
                    measure()
                }

                func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
                func download(_ download: URLDownload, didReceiveDataOfLength length: Int) { measure() }
                func downloadDidFinish(_ download: URLDownload) { isDone = true }
            }

            @Sendable private func saveADownloadCode(_ stage: Stage) throws {
                let url = stage.url("/drip/512/65536/0")
                try stage.inTemporaryFile("output stream") { path, saver in
                    guard let output = OutputStream(toFileAtPath: path, append: false) else { return }
                    output.open()
                    saver.take = { _ = output.write([UInt8]($0), maxLength: $0.count) }
                    try URLConnection.labelled("output stream", url, saver).start()
                }
                try stage.inTemporaryFile("file handle") { path, saver in
                    let handle = FileHandle(forWritingAtPath: path)
                    saver.take = { handle?.write($0) }
                    try URLConnection.labelled("file handle", url, saver).start()
                }
                try stage.inTemporaryFile("URLDownload") { path, saver in
                    let download = URLDownload(request: URLRequest(url: url), delegate: saver, startImmediately: false)
                    download.label = "URLDownload"
                    download.setDestination(path, allowOverwrite: true)
                    download.start()
                }
                try stage.inTemporaryFile("in memory") { path, saver in
                    var body = Data()
                    saver.take = { body.append($0) }
                    try URLConnection.labelled("in memory", url, saver).start()
                    try stage.run(.current) { saver.isDone }
                    try body.write(to: URL(fileURLWithPath: path))
                }
            }
            """#,
        "helpers of save-a-download": #"""
            extension Stage {
                /// Begins a load into an empty file, runs it to its end, and notes memory and size.
                fileprivate func inTemporaryFile(_ way: String, _ begin: (String, Saver) throws -> Void) throws {
                    let path = NSTemporaryDirectory() + "/rondo-lab-\(ProcessInfo.processInfo.processIdentifier)"
                    _ = FileManager.default.createFile(atPath: path, contents: nil)
                    defer { unlink(path) }
                    let before = anonymousMemory()
                    let saver = Saver()
                    saver.measure = { self.note("memory, \(way)", anonymousMemory() - before) }
                    try begin(path, saver)
                    try run(.current) { saver.isDone }
                    saver.take = { _ in }
                    let attributes = try FileManager.default.attributesOfItem(atPath: path)
                    note("saved, \(way)", (attributes[.size] as? NSNumber)?.intValue ?? 0)
                }
            }

            /// The bytes of resident anonymous memory of the process; mapped files do not count.
            private func anonymousMemory() -> Int {
                guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
                    let line = status.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") })
                else { return 0 }
                return (Int(line.filter(\.isNumber)) ?? 0) * 1024
            }
            """#,
        "schedule-after-start": #"""
            @Sendable private func scheduleAfterStartCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                loop.keepAlive(in: .tracking)
                let reader = Reader()
                let load = try URLConnection.labelled("load", stage.url("/drip/25/1000/20"), reader)
                load.start()  // in the default mode, for good

                load.schedule(in: loop, forMode: .common)
                stage.note("scheduled in the common modes, too late")

                try stage.run(loop, .default) { reader.bytes > 0 }
                loop.spend(0.25, in: .tracking)
                try stage.run(loop, .default) { reader.isDone }
            }
            """#,
        "scrolling-stalls": #"""
            @Sendable private func scrollingStallsCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                loop.keepAlive(in: .tracking)  // or running it would return at once

                // 40 pieces, one every 20 ms. The connection is scheduled by `start()` alone: in the default mode.
                let reader = Reader()
                let load = try URLConnection.labelled("load", stage.url("/drip/40/1000/20"), reader)
                load.start()

                try stage.run(loop, .default) { reader.bytes > 0 }
                loop.spend(0.4, in: .tracking)  // the user scrolls
                try stage.run(loop, .default) { reader.isDone }
            }
            """#,
        "stop-the-wrong-loop": #"""
            @Sendable private func stopTheWrongLoopCode(_ stage: Stage) throws {
                let worker = Shared<RunLoop?>(nil)
                let wasWrong = Shared(false)
                stage.thread("worker") {
                    let loop = RunLoop.current
                    worker.value = loop
                    loop.keepAlive(in: .default)  // only a stop can end the run
                    let queue = OperationQueue()
                    let load = try? URLConnection.labelled(
                        "load", stage.url("/drip/3/100/10"),
                        Reader {
                            RunLoop.current.stop()  // the loop of the queue's thread
                            wasWrong.value = true
                        })
                    load?.start()
                    load?.setDelegateQueue(queue)
                    loop.spend(Stage.patience, in: .default)
                }
                try stage.wait { wasWrong.value }
                Thread.sleep(forTimeInterval: 0.2)  // enough time for the run to end, if it could
                worker.value?.stop()
            }
            """#,
        "synchronous-request": #"""
            @Sendable private func synchronousRequestCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let beat = Timer(timeInterval: 0.02, repeats: true) { _ in }
                beat.label = "beat"
                loop.add(beat, forMode: .common)

                // 15 pieces of 100 bytes, one every 20 ms.
                let request = URLRequest(url: stage.url("/drip/15/100/20"))
                let body = try URLConnection.sendSynchronousRequest(request, returning: nil)
                stage.note("bytes", body.count)

                loop.spend(0.1, in: .default)
                beat.invalidate()
            }
            """#,
        "thread-without-loop": #"""
            @Sendable private func threadWithoutLoopCode(_ stage: Stage) throws {
                stage.thread("silent") {
                    let done = DispatchSemaphore(value: 0)
                    let load = try? URLConnection.labelled(
                        "on the silent thread", stage.url("/drip/3/100/10"), Reader { done.signal() })
                    load?.start()
                    if done.wait(timeout: .now() + 0.5) == .timedOut { stage.note("waited in vain") }
                    load?.cancel()
                }
                stage.thread("running") {
                    let reader = Reader()
                    let load = try? URLConnection.labelled(
                        "on the thread that runs", stage.url("/drip/3/100/10"), reader)
                    load?.start()
                    try? stage.run(RunLoop.current) { reader.isDone }
                }
            }
            """#,
        "upload-with-progress": #"""
            private final class Uploader: NSObject, URLConnectionDataDelegate, StreamDelegate {
                let stage: Stage, body = [UInt8](repeating: 7, count: 128 * 4096)
                var written = 0, answer = Data(), isDone = false
                init(_ stage: Stage) { self.stage = stage }

                func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
                    guard event == .hasSpaceAvailable, let output = stream as? OutputStream else { return }
                    while written < body.count, output.hasSpaceAvailable {
                        let piece = Array(body[written...].prefix(4096))
                        written += max(0, output.write(piece, maxLength: piece.count))
                        stage.note("body, written", written)
                    }
                    // The stream is full: return to the run loop until there is space again.
                    if written == body.count { output.close() }
                }

                func connection(
                    _ connection: URLConnection, didSendBodyData bytes: Int, totalBytesWritten: Int,
                    totalBytesExpectedToWrite: Int
                ) {
                    stage.note("body, sent", totalBytesWritten)
                }

                func connection(_ connection: URLConnection, didReceive data: Data) { answer += data }
                func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
            }

            @Sendable private func uploadWithProgressCode(_ stage: Stage) throws {
                let uploader = Uploader(stage)
                var body: InputStream?, source: OutputStream?
                Stream.getBoundStreams(withBufferSize: 16384, inputStream: &body, outputStream: &source)
                source?.label = "body"
                source?.delegate = uploader
                source?.schedule(in: .current, forMode: .default)
                source?.open()

                var request = URLRequest(url: stage.url("/upload"))
                request.httpMethod = "POST"
                request.httpBodyStream = body
                try URLConnection.labelled("upload", request, uploader).start()
                try stage.run(.current) { uploader.isDone }
                stage.note("the server received", Int(String(decoding: uploader.answer, as: UTF8.self)) ?? 0)
            }
            """#,
        "actor-on-a-mode": #"""
            private actor Scroller {
                let executor: RunLoop.ModeExecutor
                let stage: Stage
                nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

                init(_ loop: RunLoop, _ stage: Stage) {
                    executor = loop.executor(in: .tracking)
                    self.stage = stage
                }

                func work() { stage.note("the actor works") }
            }

            @Sendable private func actorOnAModeCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                for mode in [RunLoop.Mode.default, .tracking] { loop.keepAlive(in: mode) }
                let scroller = Scroller(loop, stage)
                let isDone = Shared(false)

                stage.note("asked")
                Task {  // runs on no loop
                    await scroller.work()
                    isDone.value = true
                }
                loop.spend(0.2, in: .default)
                loop.spend(0.2, in: .tracking)
                try stage.run(loop, .default) { isDone.value }
            }
            """#,
        "anatomy-of-a-pass": #"""
            @Sendable private func anatomyOfAPassCode(_ stage: Stage) throws {
                let loop = RunLoop.current

                let watcher = RunLoop.Observer(activities: .allActivities) { _, _ in }
                watcher.label = "watcher"
                loop.add(watcher, forMode: .default)

                let timer = Timer(timeInterval: 0, repeats: false) { _ in
                    // From now on the loop only sleeps, until this timer stops it.
                    let end = Timer(timeInterval: 0.1, repeats: false) { _ in loop.stop() }
                    end.label = "end"
                    loop.add(end, forMode: .default)
                }
                timer.label = "timer"
                loop.add(timer, forMode: .default)

                let source = RunLoop.Source {}
                source.label = "source"
                loop.add(source, forMode: .default)
                source.signal()

                loop.perform {}

                loop.spend(Stage.patience, in: .default)
            }
            """#,
        "foundation-timer": #"""
            @Sendable private func foundationTimerCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let own = Timer(timeInterval: 0.02, repeats: true) { _ in }
                own.label = "own"
                loop.add(own, forMode: .default)
                // A timer as code that imports only Foundation schedules it.
                let foreign = Foundation.Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in
                    stage.note("Foundation's timer")
                }
                loop.spend(0.3, in: .default)
                stage.note("with the bridge")
                loop.servesFoundation(in: [.default], atLeastEvery: 0.02)
                loop.spend(0.3, in: .default)
                loop.endFoundationBridge()
                stage.note("bridge ended")
                loop.spend(0.1, in: .default)
                foreign.invalidate()
                own.invalidate()
            }
            """#,
        "main-queue": #"""
            @Sendable private func mainQueueCode(_ stage: Stage) throws {
                let loop = RunLoop.main
                let modal = RunLoop.Mode("modal")
                loop.keepAlive(in: modal)
                let timer = Timer(timeInterval: 0.01, repeats: true) { _ in }
                timer.label = "timer"
                loop.add(timer, forMode: .default)
                let isDone = Shared(false)

                DispatchQueue.main.async {
                    DispatchQueue.main.async {
                        stage.note("the second block")
                        isDone.value = true
                    }
                    loop.spend(0.1, in: .default)  // the loop again, inside a block of the queue
                    stage.note("the first block returns")
                }
                loop.spend(0.1, in: modal)  // private: the queue waits
                try stage.run(loop, .default) { isDone.value }
                timer.invalidate()
            }
            """#,
        "missed-beats": #"""
            @Sendable private func missedBeatsCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let beat = Timer(timeInterval: 0.05, repeats: true) { _ in }
                stage.note("made, first beat in 50 ms")
                beat.label = "beat"
                loop.add(beat, forMode: .default)

                let busy = Timer(timeInterval: 0.13, repeats: false) { _ in
                    stage.note("busy")
                    Thread.sleep(forTimeInterval: 0.2)
                    stage.note("free")
                }
                busy.label = "busy"
                loop.add(busy, forMode: .default)

                loop.spend(0.5, in: .default)
                beat.invalidate()
            }
            """#,
        "nested-loops": #"""
            @Sendable private func nestedLoopsCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let modal = RunLoop.Mode("modal")
                let beat = Timer(timeInterval: 0.02, repeats: true) { _ in }
                beat.label = "beat"
                loop.add(beat, forMode: .default)

                // In the dialogue, 0.2 s later, the user presses a button.
                let button = Timer(timeInterval: 0.3, repeats: false) { _ in RunLoop.current.stop() }
                button.label = "button"
                loop.add(button, forMode: modal)

                let dialogue = Timer(timeInterval: 0.1, repeats: false) { _ in
                    RunLoop.current.spend(10, in: modal)
                }
                dialogue.label = "dialogue"
                loop.add(dialogue, forMode: .default)

                loop.spend(0.5, in: .default)
                beat.invalidate()
            }
            """#,
        "notification-when-idle": #"""
            @Sendable private func notificationWhenIdleCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let name = Notification.Name("the value has changed")
                let isPosted = Shared(false)
                let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
                    notification in
                    stage.note("posted", notification.userInfo?["value"] as? Int ?? 0)
                    isPosted.value = true
                }
                loop.keepAlive(in: .default)
                loop.perform {
                    for value in 1...5 {
                        NotificationQueue.default.enqueue(
                            Notification(name: name, userInfo: ["value": value]), postingStyle: .whenIdle)
                        stage.note("enqueued", value)
                    }
                    // The blocks run one after the other, each in a pass of its own.
                    loop.perform {
                        stage.note("block")
                        loop.perform {
                            stage.note("block")
                            loop.perform { stage.note("block") }
                        }
                    }
                }
                try stage.run(loop) { isPosted.value }
                // Leaves time in which the notification could be posted again.
                loop.spend(0.1, in: .default)
                NotificationCenter.default.removeObserver(token)
            }
            """#,
        "one-event-until-you-read": #"""
            private final class Listener: NSObject, StreamDelegate, Sendable {
                let stage: Stage
                init(_ stage: Stage) { self.stage = stage }

                func stream(_ stream: Stream, handle event: Stream.Event) {
                    if event == .hasBytesAvailable { stage.note("hasBytesAvailable") }
                }
            }

            @Sendable private func oneEventUntilYouReadCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                var input: InputStream?, output: OutputStream?
                Stream.getBoundStreams(withBufferSize: 1000, inputStream: &input, outputStream: &output)
                guard let input, let output else { throw StageFailure.noConnection }
                let listener = Listener(stage)
                input.label = "input"
                input.delegate = listener
                input.schedule(in: loop, forMode: .default)
                input.open()
                output.open()
                for _ in 1...5 {
                    _ = output.write([1, 2, 3], maxLength: 3)
                    stage.note("wrote")
                    loop.spend(0.03, in: .default)
                }
                var byte: UInt8 = 0
                stage.note("read one byte")
                _ = input.read(&byte, maxLength: 1)
                loop.spend(0.05, in: .default)
                input.close()
                output.close()
            }
            """#,
        "perform-and-wake-up": #"""
            @Sendable private func performAndWakeUpCode(_ stage: Stage) throws {
                let worker = Shared<RunLoop?>(nil)
                let hasRun = Shared(false)
                stage.thread("worker") {
                    RunLoop.current.keepAlive(in: .default)
                    worker.value = RunLoop.current
                    RunLoop.current.spend(Stage.patience, in: .default)
                }
                try stage.wait { worker.value?.isWaiting ?? false }
                guard let loop = worker.value else { return }

                stage.note("queued without a wake-up")
                loop.performWithoutWaking(inModes: [.default]) { stage.note("the silent block") }
                Thread.sleep(forTimeInterval: 0.2)
                stage.note("woken")
                loop.wakeUp()
                Thread.sleep(forTimeInterval: 0.05)
                try stage.wait { loop.isWaiting }

                stage.note("performed")
                loop.perform {
                    stage.note("the waking block")
                    hasRun.value = true
                }
                try stage.wait { hasRun.value }
                loop.stop()
            }
            """#,
        "polling-loop": #"""
            @Sendable private func pollingLoopCode(_ stage: Stage) throws {
                let isOver = Shared(false)
                let loop = Shared<RunLoop?>(nil)
                stage.thread("polling") {
                    RunLoop.current.keepAlive(in: .default)
                    while !isOver.value {
                        stage.note("looks at the flag")
                        RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
                    }
                    stage.note("polling has noticed")
                    stage.note("polling, CPU", nanosecondsOfThread())
                }
                stage.thread("stopped") {
                    RunLoop.current.keepAlive(in: .default)
                    loop.value = RunLoop.current
                    RunLoop.current.spend(Stage.patience, in: .default)
                    stage.note("stopped has noticed")
                    stage.note("stopped, CPU", nanosecondsOfThread())
                }
                try stage.wait { loop.value?.isWaiting ?? false }
                Thread.sleep(forTimeInterval: 0.55)
                stage.note("the end")
                isOver.value = true
                loop.value?.stop()
            }
            """#,
        "run-cannot-be-stopped": #"""
            @Sendable private func runCannotBeStoppedCode(_ stage: Stage) throws {
                let port = Port()
                let worker = Shared<RunLoop?>(nil)
                stage.thread("worker") {
                    let loop = RunLoop.current
                    loop.add(port, forMode: .default)
                    worker.value = loop
                    loop.run()
                    stage.note("run() returned")
                }
                stage.thread("bare") {
                    RunLoop.current.run()  // nothing in the default mode
                    stage.note("run() without a port returned")
                }

                try stage.wait { worker.value?.isWaiting ?? false }
                for _ in 1...3 {
                    worker.value?.stop()
                    Thread.sleep(forTimeInterval: 0.02)
                    try stage.wait { worker.value?.isWaiting ?? false }
                }
                stage.note("port taken out")
                port.invalidate()
                worker.value?.wakeUp()
            }
            """#,
        "timer-modes": #"""
            @Sendable private func timerModesCode(_ stage: Stage) throws {
                let loop = RunLoop.current

                let scheduled = Timer.scheduledTimer(withTimeInterval: 0.02, repeats: true) { _ in }
                scheduled.label = "scheduled"

                let common = Timer(timeInterval: 0.02, repeats: true) { _ in }
                common.label = "common"
                loop.add(common, forMode: .common)

                loop.spend(0.15, in: .default)
                loop.spend(0.2, in: .tracking)
                loop.spend(0.15, in: .default)

                scheduled.invalidate()
                common.invalidate()
            }
            """#,
        "two-loops-one-source": #"""
            @Sendable private func twoLoopsOneSourceCode(_ stage: Stage) throws {
                let served = Shared(0)
                let loops = Shared<[RunLoop]>([])
                let source = RunLoop.Source { served.update { $0 += 1 } }
                source.label = "work"
                for name in ["first", "second"] {
                    stage.thread(name) {
                        let loop = RunLoop.current
                        loop.add(source, forMode: .default)
                        loops.update { $0.append(loop) }
                        loop.spend(Stage.patience, in: .default)
                    }
                }
                try stage.wait { loops.value.count == 2 && loops.value.allSatisfy(\.isWaiting) }
                for number in 1...20 {
                    stage.note("signalled", number)
                    source.signal()
                    for loop in loops.value { loop.wakeUp() }
                    try stage.wait { served.value == number }
                }
                source.invalidate()
                for loop in loops.value { loop.stop() }
            }
            """#,
        "child-ends-meanwhile": #"""
            @Sendable private func childEndsMeanwhileCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                loop.keepAlive(in: .tracking)
                let told = Shared(false)
                let child = try Child.spawn("sh", ["-c", "exit 7"])
                child.label = "child"
                child.onEnd = { _, status in
                    if case .exited(let code) = status { stage.note("told, exit code", Int(code)) }
                    told.value = true
                }
                child.schedule(in: loop, forMode: .default)
                // Signal 0 is not sent; it only tests whether the process exists.
                try stage.wait { (try? child.send(signal: 0)) == nil }
                stage.note("ended")
                loop.spend(0.33, in: .tracking)
                try stage.run(loop) { told.value }
            }
            """#,
        "handler-thread": #"""
            @Sendable private func handlerThreadCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                let sessions = [
                    "own queue": URLSession(configuration: .ephemeral),
                    "main queue": URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: .main),
                    "run loop": URLSession(configuration: .ephemeral, delegate: nil, runLoop: loop),
                ]
                let called = Shared<Set<String>>([])
                for (name, session) in sessions {
                    session.dataTask(with: stage.url("/drip/1/100/0")) { _, _, _ in
                        stage.note("handler, \(name)")
                        called.update { $0.insert(name) }
                    }.resume()
                }
                stage.note("all asked")
                loop.keepAlive(in: .default)
                try stage.run(loop) { called.value.isSuperset(of: ["own queue", "run loop"]) }
                loop.spend(0.1, in: .default)

                for session in sessions.values { session.invalidateAndCancel() }
                loop.spend(0.01, in: .default)
            }
            """#,
        "session-on-a-mode": #"""
            @Sendable private func sessionOnAModeCode(_ stage: Stage) throws {
                let loop = RunLoop.current
                loop.keepAlive(in: .tracking)
                let reader = SessionReader()
                let session = URLSession(configuration: .ephemeral, delegate: reader, runLoop: loop, modes: [.default])

                let task = session.dataTask(with: stage.url("/drip/25/1000/20"))
                task.taskDescription = "task"  // its name on the timeline
                task.resume()

                try stage.run(loop, .default) { reader.bytes > 0 }
                loop.spend(0.25, in: .tracking)
                try stage.run(loop, .default) { reader.isDone }
                stage.note("bytes", reader.bytes)
                session.invalidateAndCancel()
                loop.spend(0.01, in: .default)
            }
            """#,
        "slow-delegate": #"""
            @Sendable private func slowDelegateCode(_ stage: Stage) throws {
                let queue = OperationQueue()
                queue.maxConcurrentOperationCount = 1
                let (isIn, mayLeave) = (Shared(false), DispatchSemaphore(value: 0))
                let reader = SessionReader(whenFirst: {
                    isIn.value = true
                    mayLeave.wait()
                })
                let session = URLSession(configuration: .ephemeral, delegate: reader, delegateQueue: queue)
                let task = session.dataTask(with: stage.url("/drip/32/1048576/0"))
                task.taskDescription = "task"
                task.resume()
                try stage.wait { isIn.value }

                // Waits until no more bytes have been received for a while.
                var (seen, since) = (Int64(-1), Date())
                try stage.wait {
                    if task.countOfBytesReceived != seen { (seen, since) = (task.countOfBytesReceived, Date()) }
                    return Date().timeIntervalSince(since) > 0.3
                }
                stage.note("received while the delegate slept", Int(seen))
                mayLeave.signal()

                try stage.wait { reader.isDone }
                stage.note("received at the end", reader.bytes)
                session.invalidateAndCancel()
                queue.waitUntilAllOperationsAreFinished()
            }
            """#,
        "helpers of all": #"""
            /// The reason why an experiment could not begin, or gave up.
            enum StageFailure: Error, Equatable, CustomStringConvertible {
                case tookTooLong
                case emptyMode(String)
                case noServer(String)
                case noConnection

                var description: String {
                    switch self {
                    case .tookTooLong: "the experiment waited \(Int(Stage.patience)) s for something that never came"
                    case .emptyMode(let mode): "the run loop had nothing to wait for in \(mode)"
                    case .noServer(let reason): "the lab's server could not start: \(reason)"
                    case .noConnection: "no connection could be made"
                    }
                }
            }

            /// A value that several threads of an experiment share.
            final class Shared<Value: Sendable>: Sendable {
                private let state: Mutex<Value>

                init(_ value: Value) { state = Mutex(value) }

                var value: Value {
                    get { state.withLock { $0 } }
                    set { state.withLock { $0 = newValue } }
                }

                func update(_ change: @Sendable (inout Value) -> Void) { state.withLock { change(&$0) } }
            }

            /// The delegate of most experiments: counts bytes.
            final class Reader: NSObject, URLConnectionDataDelegate, Sendable {
                private let state = Mutex((bytes: 0, isDone: false, errorCode: 0))
                private let whenDone: @Sendable () -> Void

                init(whenDone: @escaping @Sendable () -> Void = {}) { self.whenDone = whenDone }

                var bytes: Int { state.withLock { $0.bytes } }
                var isDone: Bool { state.withLock { $0.isDone } }
                /// The code of the error that ended the load; 0 if there was none.
                var errorCode: Int { state.withLock { $0.errorCode } }

                func connection(_ connection: URLConnection, didReceive data: Data) {
                    state.withLock { $0.bytes += data.count }
                }

                func connectionDidFinishLoading(_ connection: URLConnection) {
                    state.withLock { $0.isDone = true }
                    whenDone()
                }

                func connection(_ connection: URLConnection, didFailWithError error: any Error) {
                    state.withLock { ($0.isDone, $0.errorCode) = (true, (error as NSError).code) }
                    whenDone()
                }
            }

            /// The delegate of a session's tasks: counts bytes.
            final class SessionReader: NSObject, URLSessionDataDelegate, Sendable {
                private let state = Mutex((bytes: 0, isDone: false))
                private let whenFirst: @Sendable () -> Void

                /// - Parameter whenFirst: Called with the first content.
                init(whenFirst: @escaping @Sendable () -> Void = {}) { self.whenFirst = whenFirst }

                var bytes: Int { state.withLock { $0.bytes } }
                var isDone: Bool { state.withLock { $0.isDone } }

                func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                    let isFirst = state.withLock { state in
                        defer { state.bytes += data.count }
                        return state.bytes == 0
                    }
                    if isFirst { whenFirst() }
                }

                func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                    if error == nil { state.withLock { $0.isDone = true } }
                }
            }

            extension URLConnection {
                /// Makes a connection that is not started yet, with a name for the timeline.
                static func labelled(_ label: String, _ url: URL, _ delegate: Any) throws -> URLConnection {
                    try labelled(label, URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData), delegate)
                }

                static func labelled(_ label: String, _ request: URLRequest, _ delegate: Any) throws -> URLConnection {
                    guard let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
                    else { throw StageFailure.noConnection }
                    connection.label = label
                    return connection
                }
            }

            extension RunLoop {
                /// Runs the loop for that many seconds, in one activation that no source ends.
                @discardableResult
                func spend(_ seconds: TimeInterval, in mode: Mode) -> RunResult {
                    run(in: mode, for: seconds, returnAfterSourceHandled: false)
                }

                /// Keeps `mode` from being empty.
                func keepAlive(in mode: Mode) { add(Port(), forMode: mode) }
            }

            /// The processor time of the calling thread, in nanoseconds.
            func nanosecondsOfThread() -> Int {
                var time = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
                return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
            }
            """#,
        "stage": #"""
            /// The tools of an experiment: a server, notes, and threads. The program's first argument is the address that
            /// `rondo lab serve` prints.
            final class Stage: Sendable {
                static let patience = 15.0
                private let threads = Mutex<[DispatchSemaphore]>([])

                func url(_ path: String) -> URL {
                    guard let address = CommandLine.arguments.dropFirst().first, let url = URL(string: address + path) else {
                        fatalError("the first argument has to be the address that `rondo lab serve` prints")
                    }
                    return url
                }

                /// The Cache-Control fields of the requests for `url`, in the order of arrival.
                func requests(for url: URL) -> [String] {
                    let request = URLRequest(url: self.url("/requests" + url.path))
                    let lines = try? URLConnection.sendSynchronousRequest(request, returning: nil)
                    return String(decoding: lines ?? Data(), as: UTF8.self)
                        .split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
                }

                func note(_ name: String, _ value: Int = 0) { print(name, value) }

                func run(_ loop: RunLoop, _ mode: RunLoop.Mode = .default, until isDone: () -> Bool) throws {
                    let limit = Date(timeIntervalSinceNow: Self.patience)
                    while !isDone() {
                        guard limit.timeIntervalSinceNow > 0 else { throw StageFailure.tookTooLong }
                        guard loop.run(mode: mode, before: Date(timeIntervalSinceNow: 0.2)) || isDone() else {
                            throw StageFailure.emptyMode(mode.rawValue)
                        }
                    }
                }

                func wait(for isDone: () -> Bool) throws {
                    let limit = Date(timeIntervalSinceNow: Self.patience)
                    while !isDone() {
                        guard limit.timeIntervalSinceNow > 0 else { throw StageFailure.tookTooLong }
                        Thread.sleep(forTimeInterval: 0.002)
                    }
                }

                func thread(_ name: String, _ body: @escaping @Sendable () -> Void) {
                    let ended = DispatchSemaphore(value: 0)
                    threads.withLock { $0.append(ended) }
                    let thread = Thread {
                        body()
                        ended.signal()
                    }
                    thread.name = name
                    thread.start()
                }

                func joinThreads() { for ended in threads.withLock({ $0 }) { ended.wait() } }
            }
            """#,
    ]
}

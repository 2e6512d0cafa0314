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

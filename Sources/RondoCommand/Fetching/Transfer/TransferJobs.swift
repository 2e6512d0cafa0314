import Rondo

/// One URL to load.
struct TransferJob: Sendable {
    let url: String
    let operation: FetchOperation
    /// The index of `operation` in the command line.
    let operationNumber: Int
    let output: FetchOperation.Output?
    /// The texts that the globs of the URL matched.
    let matches: [String]
    let upload: String?
    /// The number of the URL in the command line, from 0; those of one pattern share it.
    let number: Int
    /// True if the URL pattern stands for several URLs; then a line says which one is loaded.
    let isOneOfSeveral: Bool
}

/// The URLs of a command line in order, with globs expanded; a value.
struct TransferJobs {
    private let operations: [FetchOperation]
    private var operation = 0
    /// The index among the operation's URLs.
    private var url = 0
    private var globs: (urls: URLGlob, uploads: URLGlob?)?
    private var index = 0
    private var number = 0

    init(_ operations: [FetchOperation]) { self.operations = operations }

    /// The next job; nil if there are no more.
    mutating func next() throws(FetchFailure) -> TransferJob? {
        while operation < operations.count {
            let current = operations[operation]
            guard url < current.urls.count else {
                (operation, url) = (operation + 1, 0)
                continue
            }
            if globs == nil { globs = try makeGlobs(current) }
            guard let globs else { return nil }
            let uploads = globs.uploads?.count ?? 1
            guard index < globs.urls.count * uploads else {
                (url, index, self.globs) = (url + 1, 0, nil)
                number += 1
                continue
            }
            defer { index += 1 }
            let (text, matches) = globs.urls.url(at: index % globs.urls.count)
            let named = url < current.outputs.count ? current.outputs[url] : nil
            return TransferJob(
                url: text, operation: current, operationNumber: operation,
                output: named ?? (current.urls[url].takesRemoteName ? .remoteName : nil), matches: matches,
                upload: globs.uploads?.url(at: index / globs.urls.count).text, number: number,
                isOneOfSeveral: globs.urls.count * uploads > 1)
        }
        return nil
    }

    private func makeGlobs(_ current: FetchOperation) throws(FetchFailure) -> (
        urls: URLGlob, uploads: URLGlob?
    ) {
        let text = current.urls[url].text
        let urls = current.takesGlobs ? try URLGlob(text) : URLGlob(literal: text)
        guard url < current.uploads.count, !current.uploads[url].isEmpty else { return (urls, nil) }
        let upload = current.uploads[url]
        return (urls, current.takesGlobs ? try URLGlob(upload) : URLGlob(literal: upload))
    }
}

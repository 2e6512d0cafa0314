public import FoundationNetworking
public import RondoCore

// The async functions without their `delegate` parameter. A program may declare a protocol with `data(for:)`
// alone, to substitute the session in tests: a session conforms to it only if it has exactly that function
// (rule US-3).

extension URLSession {
    /// `data(for:delegate:)` without a delegate.
    public nonisolated(nonsending) func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await data(for: request, delegate: nil)
    }

    /// `data(from:delegate:)` without a delegate.
    public nonisolated(nonsending) func data(from url: URL) async throws -> (Data, URLResponse) {
        try await data(from: url, delegate: nil)
    }

    /// `upload(for:from:delegate:)` without a delegate.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, from bodyData: Data
    ) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }

    /// `upload(for:fromFile:delegate:)` without a delegate.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL
    ) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: fileURL, delegate: nil)
    }

    /// `upload(resumeFrom:delegate:)` without a delegate.
    public nonisolated(nonsending) func upload(resumeFrom resumeData: Data) async throws -> (
        Data, URLResponse
    ) {
        try await upload(resumeFrom: resumeData, delegate: nil)
    }

    /// `download(for:delegate:)` without a delegate.
    public nonisolated(nonsending) func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await download(for: request, delegate: nil)
    }

    /// `download(from:delegate:)` without a delegate.
    public nonisolated(nonsending) func download(from url: URL) async throws -> (URL, URLResponse) {
        try await download(from: url, delegate: nil)
    }

    /// `download(resumeFrom:delegate:)` without a delegate.
    public nonisolated(nonsending) func download(
        resumeFrom resumeData: Data
    ) async throws -> (URL, URLResponse) {
        try await download(resumeFrom: resumeData, delegate: nil)
    }

    /// `bytes(for:delegate:)` without a delegate.
    public nonisolated(nonsending) func bytes(
        for request: URLRequest
    ) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: request, delegate: nil)
    }

    /// `bytes(from:delegate:)` without a delegate.
    public nonisolated(nonsending) func bytes(from url: URL) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(from: url, delegate: nil)
    }
}

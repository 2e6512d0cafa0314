import Rondo
import Testing

/// The class of the caches that a test makes.
enum CacheKind: CaseIterable {
    case own, foundation

    @TaskLocal static var current = CacheKind.own

    func make(memory: Int, disk: Int, path: String?) -> URLCache {
        switch self {
        case .own: URLConnection.Cache(memoryCapacity: memory, diskCapacity: disk, diskPath: path)
        case .foundation: URLCache(memoryCapacity: memory, diskCapacity: disk, diskPath: path)
        }
    }
}

/// Runs each test of a suite once for each kind of cache.
struct EachKindOfCache: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        for kind in CacheKind.allCases {
            try await CacheKind.$current.withValue(kind) { try await function() }
        }
    }
}

extension Trait where Self == EachKindOfCache {
    static var eachKindOfCache: Self { Self() }
}

internal import RondoCore
internal import RondoMutex

/// Has cookie stores write what the program has changed last when it ends in an orderly way.
enum CookiesAtExit {
    private static let stores = Mutex<[CookieStore]>([])
    private static let registration: Void = { atexit { CookiesAtExit.flush() } }()

    /// The store stays until then.
    static func register(_ store: CookieStore) {
        _ = registration
        stores.withLock { $0.append(store) }
    }

    /// Has all stores write what waits, and returns when that is done.
    static func flush() {
        for store in stores.withLock({ $0 }) { store.writeLast() }
    }
}

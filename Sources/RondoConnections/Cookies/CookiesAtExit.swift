internal import RondoCore
internal import RondoMutex

/// Makes cookie stores write the program's last changes when the program ends in an orderly way.
enum CookiesAtExit {
    private static let stores = Mutex<[CookieStore]>([])
    private static let registration: Void = { atexit { CookiesAtExit.flush() } }()

    /// Retains the store until the program ends.
    static func register(_ store: CookieStore) {
        _ = registration
        stores.withLock { $0.append(store) }
    }

    private static func flush() {
        for store in stores.withLock({ $0 }) { store.writeLast() }
    }
}

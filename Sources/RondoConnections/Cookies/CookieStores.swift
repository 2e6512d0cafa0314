internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// The store of each `HTTPCookieStorage` that loads have used, until the storage is released.
enum CookieStores {
    /// The store of the shared storage, which is not created before the store is opened.
    static let shared = CookieStore(
        FoundationCookies(), locatingFile: { CookieFolder.database }, isShared: true)

    private struct Entry {
        let visible: FoundationCookies
        let store: CookieStore
    }

    private static let others = Mutex<[ObjectIdentifier: Entry]>([:])

    static func store(of storage: HTTPCookieStorage) -> CookieStore {
        if storage === FoundationCookies.sharedStorage { return shared }
        return others.withLock { others in
            // A storage that had this address may have been released.
            if let entry = others[ObjectIdentifier(storage)], !entry.visible.isGone { return entry.store }
            others = others.filter { !$0.value.visible.isGone }
            let visible = FoundationCookies(storage)
            let entry = Entry(visible: visible, store: CookieStore(visible, file: nil))
            others[ObjectIdentifier(storage)] = entry
            return entry.store
        }
    }

    /// For tests: loads with `storage` use `store`.
    static func use(_ store: CookieStore, for storage: HTTPCookieStorage) {
        others.withLock {
            $0[ObjectIdentifier(storage)] = Entry(visible: FoundationCookies(storage), store: store)
        }
    }
}

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

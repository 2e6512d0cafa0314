internal import CDispatch
package import FoundationNetworking
package import RondoCore

/// The files in which the loads of this process keep responses, cookies, credentials and HSTS hosts.
package enum LoadStorage {
    /// Forgets the credentials in the program's file for them, which is written with the next flush, or before it.
    package static func forgetPermanentCredentials() { PersistedCredentials.removeAll() }

    /// Removes all cookies of `storage`, on the thread of its store: Foundation takes 0.05 ms and more for each. A request that
    /// is sent from now on has none of them.
    package static func removeCookies(of storage: HTTPCookieStorage) {
        CookieStores.store(of: storage).removeAll()
    }

    /// Writes everything that waits to be written, on a thread of its own, which then calls `done`.
    ///
    /// - Parameter storage: Its cookies are seen to as well as those of the shared storage: those that were received are in it,
    ///   and those that were removed are not.
    /// - Throws: The machine has no thread left. Nothing was written earlier than it would have been, and `done` is not
    ///   called.
    package static func flush(
        cookiesOf storage: HTTPCookieStorage?, then done: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let own = storage.map(CookieStores.store)
        try SystemThread.start(name: "rondo.flush") {
            let cookiesAreWritten = DispatchSemaphore(value: 0)
            let stores = [CookieStores.shared] + (own.map { $0 === CookieStores.shared ? [] : [$0] } ?? [])
            for store in stores { store.flush { cookiesAreWritten.signal() } }
            BackgroundWriter.flushAll()
            for _ in stores { cookiesAreWritten.wait() }
            done()
        }
    }
}

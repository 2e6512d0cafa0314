internal import CDispatch
package import RondoCore

/// The files in which the loads of this process keep responses, cookies, credentials and HSTS hosts.
package enum LoadStorage {
    /// Forgets the credentials in the program's file for them, which is written with the next flush, or
    /// before it.
    package static func forgetPermanentCredentials() { PersistedCredentials.removeAll() }

    /// Removes all cookies of the storage that loads with `settings` use, on the thread of its store:
    /// Foundation takes 0.05 ms and more for each. A request that is sent from now on has none of them.
    package static func removeCookies(of settings: LoadSettings) { settings.values.cookieStore?.removeAll() }

    /// Writes everything that waits to be written, on a thread of its own, which then calls `done`.
    ///
    /// - Parameter settings: Besides the shared storage, the cookie storage of these settings is flushed:
    ///   received cookies are in it afterwards, removed ones are not.
    /// - Throws: The machine has no thread left. Nothing was written earlier than it would have been, and
    ///   `done` is not called.
    package static func flush(
        cookiesOf settings: LoadSettings, then done: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        try SystemThread.start(name: "rondo.flush") {
            let cookiesAreWritten = DispatchSemaphore(value: 0)
            var stores = [CookieStores.shared]
            if let own = settings.values.cookieStore, own !== CookieStores.shared { stores.append(own) }
            for store in stores { store.flush { cookiesAreWritten.signal() } }
            BackgroundWriter.flushAll()
            for _ in stores { cookiesAreWritten.wait() }
            done()
        }
    }
}

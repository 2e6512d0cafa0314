internal import CDispatch
package import RondoCore

/// The files in which the loads of this process keep responses, cookies, credentials and HSTS hosts.
package enum LoadStorage {
    /// Forgets the credentials in the program's file for them, which is written with the next flush, or before it.
    package static func forgetPermanentCredentials() { PersistedCredentials.removeAll() }

    /// Writes everything that waits to be written, on a thread of its own, which then calls `done`.
    ///
    /// - Throws: The machine has no thread left. Nothing was written earlier than it would have been, and `done` is not
    ///   called.
    package static func flush(then done: @escaping @Sendable () -> Void) throws(SystemError) {
        try SystemThread.start(name: "rondo.flush") {
            let cookiesAreWritten = DispatchSemaphore(value: 0)
            CookieStores.shared.flush { cookiesAreWritten.signal() }
            BackgroundWriter.flushAll()
            cookiesAreWritten.wait()
            done()
        }
    }
}

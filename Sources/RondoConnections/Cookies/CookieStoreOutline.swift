extension CookieStoreState {
    /// The facts of the state that loads read without its lock, in one word: `CookieStore.change` publishes
    /// it.
    struct Outline {
        let word: UInt

        private static let readable: UInt = 1
        private static let examinable: UInt = 2
        private static let waiting: UInt = 4
        private static let empty: UInt = 8
        private static let versionShift = 4

        init(word: UInt) { self.word = word }

        fileprivate init(
            version: Int, isReadable: Bool, isExaminable: Bool, hasWaiting: Bool, isEmpty: Bool
        ) {
            var word = UInt(bitPattern: version) << Self.versionShift
            if isReadable { word |= Self.readable }
            if isExaminable { word |= Self.examinable }
            if hasWaiting { word |= Self.waiting }
            if isEmpty { word |= Self.empty }
            self.word = word
        }

        /// Whether cookies can be read at once.
        var isReadable: Bool { word & Self.readable != 0 }
        /// Whether a load may examine the storage.
        var isExaminable: Bool { word & Self.examinable != 0 }
        /// Whether cookies wait to be shown in the storage, to which the program's accept policy matters.
        var hasWaiting: Bool { word & Self.waiting != 0 }
        /// Whether a request sends no cookie and leaves nothing to do, as long as the storage has no cookie.
        var isEmpty: Bool { word & Self.empty != 0 }
        /// `storageVersion`, to be compared.
        var version: UInt { word >> Self.versionShift }
    }

    var outline: Outline {
        Outline(
            version: storageVersion, isReadable: isReadable, isExaminable: isExaminable,
            hasWaiting: ledger.waitingCount > 0, isEmpty: isEmpty)
    }

    private var isEmpty: Bool {
        // Whether Foundation's file has to be written depends on the time too.
        ledger.isEmpty && isExaminable && ledger.waitingCount == 0 && !ledger.isUnfiled && !hasWork
    }
}

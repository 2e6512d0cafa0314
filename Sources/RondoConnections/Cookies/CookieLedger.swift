internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The state of a cookie store: its cookies, which of them Foundation's storage has, and which changes have
/// to be written to that storage and to the file.
///
/// A value. Loads use the table. Foundation's storage is a copy of it, updated one storage key at a time;
/// changes that the program makes to the storage are found by comparing objects, and are applied to the
/// table.
struct CookieLedger {
    /// The key under which Foundation keeps one cookie: it joins domain, path and name without separators, so
    /// a few different cookies may share a storage key.
    typealias StorageKey = String

    private struct ShownCookie {
        let object: HTTPCookie
        let storageKey: StorageKey
        // Computed once, because reading Foundation's object takes time, during which loops would wait.
        let key: Cookie.Key
        let digest: Int64
        /// Whether Foundation writes it to its file.
        let isFiled: Bool

        init(_ object: HTTPCookie, _ storageKey: StorageKey) {
            let cookie = Cookie(object)
            (self.object, self.storageKey) = (object, storageKey)
            (key, digest, isFiled) = (cookie.key, cookie.digest, cookie.expires != nil)
        }
    }

    /// A storage key whose cookie has to be updated in Foundation's storage.
    private struct Mark {
        var key: Cookie.Key
        /// Whether the storage had been examined before the mark was set: a change found afterwards is newer.
        var isAfterExamination: Bool
    }

    private(set) var table = CookieTable()
    /// The keys of cookies that the program has set itself, which Foundation's file has.
    private var foreign: Set<Cookie.Key> = []

    private var known: [ObjectIdentifier: ShownCookie] = [:]
    private var shown: [StorageKey: ShownCookie] = [:]
    private var lastSeen: [HTTPCookie] = []

    private var marks: [StorageKey: Mark] = [:]
    private var order = FIFO<StorageKey>()
    /// The number of storage keys that were ever marked for an update, and of those whose update is done.
    private(set) var askedCount = 0
    private(set) var doneCount = 0

    /// The contents of Foundation's file under a storage key that has changed since the file was written.
    private struct StaleFileEntry {
        let key: Cookie.Key
        /// The cookie's digest; nil if the file has no cookie there.
        let digest: Int64?
    }

    private var unfiled: [StorageKey: StaleFileEntry] = [:]

    /// The keys of the cookies whose rows have to be written.
    private var dirty: Set<Cookie.Key> = []
    /// The keys that have rows in the file, as far as is known (a session cookie usually has none to remove),
    /// with the time of the last known change to each: a row that another process has changed later stays as
    /// it is.
    private var keysInFile: [Cookie.Key: Date] = [:]
    /// The times of the rows that were read and are in the file, as far as is known. A cookie that has this
    /// time is the one of its row.
    private var timesRead: [Cookie.Key: Date] = [:]
    /// The keys of tombstones: rows that record the removal of a cookie that Foundation's file still has.
    private var tombstones: [StorageKey: Cookie.Key] = [:]

    /// A smaller change of an expiry, in seconds, is neither written to Foundation's storage nor to the file.
    static let expiryTolerance: Double = 60

    /// The number of storage keys that wait for an update.
    var waitingCount: Int { marks.count }
    /// Whether there is no cookie, and was none in the storage when it was last examined.
    var isEmpty: Bool { table.count == 0 && lastSeen.isEmpty }
    var hasDirtyRows: Bool { !dirty.isEmpty }
    var dirtyCount: Int { dirty.count }
    /// Whether Foundation's file is older than its storage.
    var isUnfiled: Bool { !unfiled.isEmpty }

    // MARK: Receiving

    /// Applies the cookies that a response sets.
    ///
    /// - Parameter isAfterExamination: Whether the storage has just been examined.
    mutating func receive(_ cookies: [Cookie], from origin: CookieOrigin, isAfterExamination: Bool, now: Date)
    {
        for key in table.receive(cookies, from: origin, now: now) {
            if !foreign.isEmpty { foreign.remove(key) }
            let storageKey = Self.storageKey(of: key)
            if marks[storageKey] == nil, let cookie = table[key],
                let object = shown[storageKey]?.object as? StoredCookie,
                object.cookie.key == key, Self.isAsGood(object.cookie, cookie, now: now)
            {
                continue
            }
            mark(storageKey, key, isAfterExamination: isAfterExamination)
            guard isKept(key, at: storageKey) else { continue }
            dirty.insert(key)
            // The server has deleted it; one that is removed for lack of room has not changed.
            if table[key] == nil, cookies.contains(where: { $0.key == key }) { noteRow(key, at: now) }
        }
    }

    /// Whether one of the files has, or is to have, a row or a copy of a cookie.
    private func isKept(_ key: Cookie.Key, at storageKey: StorageKey) -> Bool {
        table[key]?.expires != nil || keysInFile[key] != nil || unfiled[storageKey] != nil
            || shownDigest(storageKey) != nil
    }

    /// Whether a program would see no relevant difference between the two cookies.
    private static func isAsGood(_ shown: Cookie, _ new: Cookie, now: Date) -> Bool {
        guard shown.value == new.value, shown.isSecure == new.isSecure, shown.isHTTPOnly == new.isHTTPOnly
        else { return false }
        guard let old = shown.expires, let expires = new.expires else { return shown.expires == new.expires }
        // For a cookie with a short life, a small change matters too.
        let life = expires.timeIntervalSince(now)
        return abs(expires.timeIntervalSince(old)) < min(expiryTolerance, life / 10)
    }

    private mutating func mark(_ storageKey: StorageKey, _ key: Cookie.Key, isAfterExamination: Bool) {
        let mark = Mark(key: key, isAfterExamination: isAfterExamination)
        if marks.updateValue(mark, forKey: storageKey) != nil { return }
        order.append(storageKey)
        askedCount += 1
    }

    /// Removes all cookies, those of the program too.
    mutating func removeAll(now: Date) {
        // The program's own come first: while one of the store's is in the storage, Foundation can be kept
        // from writing its file.
        var all = Array(shown.values)
        _ = all.partition { $0.object is StoredCookie }
        for shown in all { mark(shown.storageKey, shown.key, isAfterExamination: true) }
        for cookie in table.all {
            let storageKey = Self.storageKey(of: cookie.key)
            if isKept(cookie.key, at: storageKey) {
                dirty.insert(cookie.key)
                noteRow(cookie.key, at: now)
            }
            mark(storageKey, cookie.key, isAfterExamination: true)
            table.remove(cookie.key)
        }
        foreign = []
    }

    // MARK: Changes by the program

    /// Finds the changes that the program has made in the storage, and applies them to the table. Must not be
    /// called while the store itself is changing the storage.
    ///
    /// - Returns: Whether the objects differ from those of the last call.
    @discardableResult
    mutating func examine(_ objects: [HTTPCookie], now: @autoclosure () -> Date) -> Bool {
        if Self.areSame(objects, lastSeen) { return false }
        defer { lastSeen = objects }
        if areReplaced(objects) { return true }
        let now = now()
        var added: [HTTPCookie] = []
        var staying = 0
        for object in objects {
            if known[ObjectIdentifier(object)] == nil { added.append(object) } else { staying += 1 }
        }
        var removed: [ShownCookie] = []
        if staying < known.count {
            let seen = Set(objects.map { ObjectIdentifier($0) })
            for (identity, old) in known where !seen.contains(identity) {
                removed.append(old)
                known[identity] = nil
                if shown[old.storageKey]?.object === old.object { shown[old.storageKey] = nil }
            }
        }
        // A change by the program makes Foundation write its file; the expiry of a cookie does not.
        if !added.isEmpty || removed.contains(where: { !Self.hasExpired($0.object, now) }) { noteFiled() }
        for object in added {
            let storageKey = Self.storageKey(of: object)
            let new = ShownCookie(object, storageKey)
            known[ObjectIdentifier(object)] = new
            shown[storageKey] = new
            take(object, storageKey, now: now)
        }
        for old in removed where shown[old.storageKey] == nil { programRemoved(old, now: now) }
        return true
    }

    /// Whether these are the same objects in the same order. It has to be quick: it is asked for each
    /// request, and there may be thousands of cookies.
    private static func areSame(_ objects: [HTTPCookie], _ others: [HTTPCookie]) -> Bool {
        guard objects.count == others.count else { return false }
        // An array of objects holds their addresses.
        return objects.withUnsafeBytes { objects in
            others.withUnsafeBytes { others in
                guard let start = objects.baseAddress, let other = others.baseAddress else { return true }
                return memcmp(start, other, objects.count) == 0
            }
        }
    }

    /// Whether the objects are the same as the last time, except those that the store has replaced itself.
    private func areReplaced(_ objects: [HTTPCookie]) -> Bool {
        guard objects.count == lastSeen.count, objects.count == known.count else { return false }
        return zip(objects, lastSeen).allSatisfy { object, last in
            object === last
                || known[ObjectIdentifier(object)] != nil && known[ObjectIdentifier(last)] == nil
        }
    }

    private mutating func take(_ object: HTTPCookie, _ storageKey: StorageKey, now: Date) {
        let cookie = (object as? StoredCookie)?.cookie ?? Cookie(object)
        if let mark = marks[storageKey], let mine = table[mark.key], cookie.updatedAt <= mine.updatedAt {
            return
        }
        unmark(storageKey)
        forget(storageKey, ofDomain: cookie.domain, but: cookie.key, now: now)
        table.insert(cookie)
        if !(object is StoredCookie) { foreign.insert(cookie.key) }
        dirty.insert(cookie.key)
    }

    private mutating func programRemoved(_ old: ShownCookie, now: Date) {
        let domain = Cookie.domain(of: old.object)
        if Self.hasExpired(old.object, now) {
            // Foundation has removed it. The server may have extended its life since.
            let alive = table.cookies(ofDomain: domain).first {
                Self.storageKey(of: $0.key) == old.storageKey && !$0.isExpired(at: now)
            }
            if let alive { mark(old.storageKey, alive.key, isAfterExamination: true) }
            return
        }
        if let mark = marks[old.storageKey], !mark.isAfterExamination { return }
        unmark(old.storageKey)
        forget(old.storageKey, ofDomain: domain, but: nil, now: now)
    }

    private static func hasExpired(_ object: HTTPCookie, _ now: Date) -> Bool {
        object.expiresDate.map { $0 <= now } ?? false
    }

    private mutating func unmark(_ storageKey: StorageKey) {
        // The storage key stays in `order`, and is skipped there.
        if let mark = marks.removeValue(forKey: storageKey) { dirty.insert(mark.key) }
    }

    /// Removes the cookies with a storage key.
    private mutating func forget(
        _ storageKey: StorageKey, ofDomain domain: String, but kept: Cookie.Key?, now: Date
    ) {
        for cookie in table.cookies(ofDomain: domain)
        where cookie.key != kept && Self.storageKey(of: cookie.key) == storageKey {
            table.remove(cookie.key)
            foreign.remove(cookie.key)
            dirty.insert(cookie.key)
            noteRow(cookie.key, at: now)
        }
    }

    // MARK: Showing

    enum Step {
        case set(Cookie)
        case delete(HTTPCookie)
    }

    /// The next change to Foundation's storage.
    mutating func nextStep(now: Date) -> Step? {
        while let storageKey = order.popFirst() {
            doneCount += 1
            guard let mark = marks.removeValue(forKey: storageKey) else { continue }
            if let cookie = table[mark.key], !cookie.isExpired(at: now) { return .set(cookie) }
            if let shown = shown[storageKey] { return .delete(shown.object) }
        }
        return nil
    }

    /// Marks a cookie again that the storage does not take now: its turn comes after all that wait.
    ///
    /// - Returns: The older cookie that the storage shows in its place.
    mutating func postpone(_ cookie: Cookie) -> HTTPCookie? {
        let storageKey = Self.storageKey(of: cookie.key)
        mark(storageKey, cookie.key, isAfterExamination: true)
        return shown[storageKey]?.object
    }

    /// Call it when Foundation's storage is about to get `object`.
    mutating func willShow(_ object: StoredCookie) {
        let storageKey = Self.storageKey(of: object.cookie.key)
        let new = ShownCookie(object, storageKey)
        willRemove(at: storageKey, object.cookie.key, for: new)
        known[ObjectIdentifier(object)] = new
        shown[storageKey] = new
    }

    mutating func willRemove(_ object: HTTPCookie) {
        let key = (object as? StoredCookie)?.cookie.key ?? Cookie(object).key
        willRemove(at: Self.storageKey(of: object), key, for: nil)
    }

    private mutating func willRemove(at storageKey: StorageKey, _ key: Cookie.Key, for new: ShownCookie?) {
        let digest = shownDigest(storageKey)
        // A session cookie is not in Foundation's file, before or after.
        if unfiled[storageKey] == nil, digest != nil || new?.isFiled ?? false {
            unfiled[storageKey] = StaleFileEntry(key: key, digest: digest)
        }
        if let old = shown.removeValue(forKey: storageKey) { known[ObjectIdentifier(old.object)] = nil }
    }

    /// Another of the store's own cookies that Foundation's storage has, beside `object`.
    func anyShown(beside object: HTTPCookie) -> StoredCookie? {
        for shown in shown.values {
            if let other = shown.object as? StoredCookie, other !== object { return other }
        }
        return nil
    }

    // MARK: The files

    private func shownDigest(_ storageKey: StorageKey) -> Int64? {
        // Only these are in Foundation's file.
        shown[storageKey].flatMap { $0.isFiled ? $0.digest : nil }
    }

    /// Notes that Foundation has written its file: it contains the cookies that the storage shows.
    mutating func noteFiled() {
        // A row with the digest of the cookie that it replaces stays valid, unless that cookie has changed
        // since.
        for (storageKey, unfiled) in unfiled where unfiled.digest == nil || marks[storageKey] != nil {
            dirty.insert(unfiled.key)
        }
        for (storageKey, key) in tombstones where marks[storageKey] == nil {
            dirty.insert(key)
            tombstones[storageKey] = nil
        }
        unfiled = [:]
    }

    /// Notes a change to a cookie whose row is known, or is to be written.
    private mutating func noteRow(_ key: Cookie.Key, at date: Date) {
        keysInFile[key] = max(keysInFile[key] ?? date, date)
    }

    /// Takes the rows that have to be written since the last time, at most `maximum` of them.
    mutating func takeRows(atMost maximum: Int = .max, now: Date) -> [CookieRow] {
        let keys = Array(dirty.prefix(maximum))
        dirty.subtract(keys)
        return keys.map { key in
            let storageKey = Self.storageKey(of: key)
            let unfiled = unfiled[storageKey]
            let replaced = unfiled.map(\.digest) ?? shownDigest(storageKey)
            if let cookie = table[key] { noteRow(key, at: cookie.updatedAt) }
            let updatedAt = keysInFile[key]
            if let cookie = table[key], cookie.expires != nil, !cookie.isExpired(at: now),
                !foreign.contains(key)
            {
                // A cookie that was received before the file was opened may be older than the row that was
                // read.
                return CookieRow(
                    key: key, cookie: cookie, replaced: replaced, updatedAt: updatedAt,
                    isOnlyRead: updatedAt == timesRead[key] && cookie.updatedAt == updatedAt)
            }
            // Without this row the cookie in Foundation's file would come back if the process ended now.
            if let replaced, marks[storageKey]?.key == key || unfiled?.key == key {
                tombstones[storageKey] = key
                let row = CookieRow(key: key, cookie: nil, replaced: replaced, updatedAt: updatedAt)
                noteRow(key, at: row.updatedAt)
                return row
            }
            keysInFile[key] = nil
            timesRead[key] = nil
            return CookieRow(key: key, cookie: nil, replaced: nil, updatedAt: updatedAt)
        }
    }

    /// Marks rows as dirty again, because they could not be written.
    mutating func putBack(_ rows: [CookieRow]) {
        for row in rows {
            dirty.insert(row.key)
            noteRow(row.key, at: row.updatedAt)
        }
    }

    /// Merges the rows of the file with the cookies that Foundation's storage has read from its own, which
    /// has just been examined.
    ///
    /// - Parameter isLost: Whether a cookie that was in Foundation's file when the row was written, and is
    ///   not in its storage, has been removed by the program since it was started.
    mutating func merge(_ rows: [CookieRow], now: Date, isLost: (Cookie) -> Bool) {
        for row in rows {
            noteRow(row.key, at: row.updatedAt)
            timesRead[row.key] = row.updatedAt
            let storageKey = Self.storageKey(of: row.key)
            let own = shown[storageKey]
            // Foundation reads neither Secure nor the age from its file.
            let isOurs =
                own.map { $0.digest == row.replaced || $0.digest == row.cookie?.digest } ?? false
            dirty.insert(row.key)
            guard let cookie = row.cookie, !cookie.isExpired(at: now) else {
                if isOurs {
                    table.remove(row.key)
                    foreign.remove(row.key)
                    mark(storageKey, row.key, isAfterExamination: true)
                }
                continue
            }
            if let own {
                guard isOurs else { continue }
                foreign.remove(row.key)
                table.remove(row.key)
                table.insert(cookie)
                if own.digest == cookie.digest {
                    dirty.remove(row.key)
                } else {
                    mark(storageKey, row.key, isAfterExamination: true)
                }
            } else if table[row.key] == nil, row.replaced == nil || !isLost(cookie) {
                table.insert(cookie)
                mark(storageKey, row.key, isAfterExamination: true)
            }
        }
        for key in table.makeRoom(now: now) {
            dirty.insert(key)
            mark(Self.storageKey(of: key), key, isAfterExamination: true)
        }
    }

    /// Marks all rows to be written anew, to a file that has none of them.
    mutating func markAllDirty() {
        timesRead = [:]
        for cookie in table.all where cookie.expires != nil { dirty.insert(cookie.key) }
    }

    // MARK: Storage keys

    static func storageKey(of key: Cookie.Key) -> StorageKey {
        (key.isHostOnly ? "" : ".") + key.domain + key.path + key.name
    }

    static func storageKey(of object: HTTPCookie) -> StorageKey { object.domain + object.path + object.name }
}

extension Cookie {
    /// Foundation distinguishes a domain's cookie from a host's by a dot in front of the domain.
    init(_ object: HTTPCookie) {
        let created = Date(
            timeIntervalSinceReferenceDate: object.properties?[.created] as? Double ?? 0)
        self.init(
            name: object.name, value: object.value, domain: Self.domain(of: object),
            isHostOnly: !object.domain.hasPrefix("."), path: object.path, expires: object.expiresDate,
            isSecure: object.isSecure, isHTTPOnly: object.isHTTPOnly, createdAt: created)
    }

    static func domain(of object: HTTPCookie) -> String {
        (object.domain.hasPrefix(".") ? String(object.domain.dropFirst()) : object.domain).lowercased()
    }
}

/// The notifications of all queues that wait to be posted by one loop, in two lists: those to be posted as
/// soon as possible, and those for an idle loop.
///
/// `@unchecked Sendable`: touched only under the lock of the loop that holds it.
final class QueuedNotifications: @unchecked Sendable {
    static let common = "kCFRunLoopCommonModes"

    enum Style: CaseIterable {
        case asap
        case whenIdle
    }

    /// A notification that waits, with its queue and modes. `@unchecked Sendable`: an entry goes to the
    /// thread of its loop and is posted or released there. A program that enqueues from another thread hands
    /// the notification over (rule NQ-20).
    struct Entry: @unchecked Sendable {
        /// Entries are numbered in the order in which they were enqueued, over both lists.
        fileprivate(set) var number: UInt64 = 0
        let queue: ObjectIdentifier
        /// The name of the queue, for traces.
        let label: String?
        let center: NotificationCenter
        let notification: Notification
        let modes: [String]
    }

    private var asap = NotificationList()
    private var whenIdle = NotificationList()
    /// The number of the entry that was enqueued last; 0 if there was none.
    private(set) var lastNumber: UInt64 = 0

    private subscript(style: Style) -> NotificationList {
        get { style == .asap ? asap : whenIdle }
        _modify { if style == .asap { yield &asap } else { yield &whenIdle } }
    }

    func isEmpty(_ style: Style) -> Bool { self[style].isEmpty }

    /// Whether a notification of `style` may be posted in `mode`.
    func has(_ style: Style, in mode: String, isCommon: Bool) -> Bool {
        count(style, in: mode, isCommon: isCommon) > 0
    }

    /// The modes for which notifications of either style wait; the common modes appear under the common name.
    var modes: Set<String> { Set(asap.modes).union(whenIdle.modes) }

    /// The number of notifications that name `mode`, without those for the common modes.
    func count(_ style: Style, named mode: String) -> Int { self[style].count(named: mode) }

    /// Describes the notifications that `mode` posts, as in "notifications: 2 as soon as possible, 1 when
    /// idle"; nil if there are none.
    func summary(in mode: String, isCommon: Bool) -> String? {
        let counts = [
            (count(.asap, in: mode, isCommon: isCommon), "as soon as possible"),
            (count(.whenIdle, in: mode, isCommon: isCommon), "when idle"),
        ]
        let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.isEmpty ? nil : "notifications: \(parts.joined(separator: ", "))"
    }

    private func count(_ style: Style, in mode: String, isCommon: Bool) -> Int {
        count(style, named: mode) + (isCommon ? count(style, named: Self.common) : 0)
    }

    func append(_ entry: Entry, _ style: Style) {
        lastNumber += 1
        var entry = entry
        entry.number = lastNumber
        self[style].append(entry)
    }

    /// Takes the first notification of `style` that may be posted in `mode` and whose number is greater than
    /// `first` and at most `last`.
    func take(
        _ style: Style, in mode: String, isCommon: Bool, after first: UInt64, upTo last: UInt64
    ) -> Entry? {
        self[style].take(in: mode, isCommon: isCommon, after: first, upTo: last)
    }

    /// Removes the entries that match from both lists. The caller releases them after the lock.
    func removeAll(where matches: (Entry) -> Bool) -> [Entry] {
        asap.removeAll(where: matches) + whenIdle.removeAll(where: matches)
    }

    /// Removes the entries of `queue` that have the name of `notification`, its sender, or both, as is asked,
    /// from both lists. The caller releases them after the lock.
    func removeAll(
        of queue: ObjectIdentifier, like notification: Notification, inName: Bool, inSender: Bool
    ) -> [Entry] {
        let wanted = keys(of: queue, like: notification, inName: inName, inSender: inSender)
        return asap.removeAll(with: wanted) + whenIdle.removeAll(with: wanted)
    }

    /// The number of entries at which removals have looked, for tests: it may not grow with those that wait.
    var lookedAt: Int { asap.lookedAt + whenIdle.lookedAt }

    /// The keys that an entry must have; none if no entry matches.
    private func keys(
        of queue: ObjectIdentifier, like notification: Notification, inName: Bool, inSender: Bool
    ) -> [CoalescingKey] {
        let keys = CoalescingKey.all(of: notification, in: queue)
        // A sender without an identity matches none.
        if inSender, keys.sender == nil { return [] }
        var wanted: [CoalescingKey] = []
        if inName { wanted.append(keys.name) }
        if inSender, let sender = keys.sender { wanted.append(sender) }
        return wanted
    }

    /// The matching entry that was enqueued last, and its style.
    func last(where matches: (Entry) -> Bool) -> (entry: Entry, style: Style)? {
        Style.allCases.compactMap { style in self[style].last(where: matches).map { ($0, style) } }
            .max { $0.0.number < $1.0.number }
    }
}

/// A property by which notifications of a queue coalesce.
private enum CoalescingKey: Hashable {
    case name(Notification.Name, in: ObjectIdentifier)
    /// Senders are compared by identity; nil is the same as nil.
    case sender(ObjectIdentifier?, in: ObjectIdentifier)

    /// - Returns: Both keys of `notification`; no key of the sender if it is a value, which has no identity
    ///   and is never the same as another one.
    static func all(
        of notification: Notification, in queue: ObjectIdentifier
    ) -> (name: CoalescingKey, sender: CoalescingKey?) {
        let name = CoalescingKey.name(notification.name, in: queue)
        guard let sender = notification.object else { return (name, .sender(nil, in: queue)) }
        guard type(of: sender) is AnyClass else { return (name, nil) }
        return (name, .sender(ObjectIdentifier(sender as AnyObject), in: queue))
    }
}

extension QueuedNotifications.Entry {
    /// Whether this has the name of `other` and the same sender, which has an identity. Both are of the same
    /// queue.
    func isSame(as other: Notification) -> Bool {
        let (own, others) = (
            CoalescingKey.all(of: notification, in: queue), CoalescingKey.all(of: other, in: queue)
        )
        return own.name == others.name && own.sender != nil && own.sender == others.sender
    }
}

/// Entries in the order of their numbers.
///
/// A taken entry leaves an empty slot, so that taking many from the front moves none of the others; when more
/// than half of the slots are empty, they are removed.
private struct NotificationList {
    private struct Slot {
        let number: UInt64
        var entry: QueuedNotifications.Entry?
    }

    private var slots: [Slot] = []
    private var filled = 0
    /// The numbers of the entries that name each mode, so that a pass finds its own without looking at the
    /// others.
    private var numbersByMode: [String: KeyedQueue<UInt64, Void>] = [:]
    /// The numbers of the entries with each key, so that coalescing finds its own without looking at the
    /// others.
    private var numbersByKey: [CoalescingKey: Set<UInt64>] = [:]

    private(set) var lookedAt = 0

    var isEmpty: Bool { filled == 0 }

    /// The modes that entries name.
    var modes: [String] { Array(numbersByMode.keys) }

    func count(named mode: String) -> Int { numbersByMode[mode]?.count ?? 0 }

    mutating func append(_ entry: QueuedNotifications.Entry) {
        slots.append(Slot(number: entry.number, entry: entry))
        filled += 1
        for mode in Set(entry.modes) {
            numbersByMode[mode, default: KeyedQueue()].insert((), key: entry.number)
        }
        for key in keys(of: entry) { numbersByKey[key, default: []].insert(entry.number) }
    }

    /// Takes the first entry that names `mode`, or the common modes if that is one.
    mutating func take(
        in mode: String, isCommon: Bool, after first: UInt64, upTo last: UInt64
    ) -> QueuedNotifications.Entry? {
        let own = numbersByMode[mode]?.nextKey(after: first)
        let common = isCommon ? numbersByMode[QueuedNotifications.common]?.nextKey(after: first) : nil
        let number = min(own ?? .max, common ?? .max)
        guard number <= last else { return nil }
        lookedAt += 1
        let index = firstIndex(after: number - 1)
        let entry = slots[index].entry
        empty(index)
        compact()
        return entry
    }

    mutating func removeAll(where matches: (QueuedNotifications.Entry) -> Bool) -> [QueuedNotifications.Entry]
    {
        guard filled > 0 else { return [] }
        lookedAt += slots.count
        var removed: [QueuedNotifications.Entry] = []
        for index in slots.indices {
            guard let entry = slots[index].entry, matches(entry) else { continue }
            removed.append(entry)
            empty(index)
        }
        compact()
        return removed
    }

    /// Removes the entries that have all of `keys`; with none, no entry.
    mutating func removeAll(with keys: [CoalescingKey]) -> [QueuedNotifications.Entry] {
        var removed: [QueuedNotifications.Entry] = []
        for number in numbers(with: keys) {
            let index = firstIndex(after: number - 1)
            guard let entry = slots[index].entry else { continue }
            removed.append(entry)
            empty(index)
        }
        compact()
        return removed
    }

    /// The numbers of the entries that have all of `keys`, in order. An array of their own, so that no set of
    /// numbers is copied when one of them is removed from it.
    private mutating func numbers(with keys: [CoalescingKey]) -> [UInt64] {
        guard filled > 0 else { return [] }
        // The rarest key first: only its entries are looked at.
        let found = keys.map { numbersByKey[$0] ?? [] }.sorted { $0.count < $1.count }
        guard let fewest = found.first else { return [] }
        lookedAt += fewest.count
        return fewest.filter { number in found.dropFirst().allSatisfy { $0.contains(number) } }.sorted()
    }

    func last(where matches: (QueuedNotifications.Entry) -> Bool) -> QueuedNotifications.Entry? {
        slots.last { $0.entry.map(matches) ?? false }?.entry
    }

    private mutating func empty(_ index: Int) {
        guard let entry = slots[index].entry.take() else { return }
        filled -= 1
        for mode in Set(entry.modes) {
            _ = numbersByMode[mode]?.remove(entry.number)
            if numbersByMode[mode]?.isEmpty ?? false { numbersByMode[mode] = nil }
        }
        for key in keys(of: entry) {
            numbersByKey[key]?.remove(entry.number)
            if numbersByKey[key]?.isEmpty ?? false { numbersByKey[key] = nil }
        }
    }

    private func keys(of entry: QueuedNotifications.Entry) -> [CoalescingKey] {
        let keys = CoalescingKey.all(of: entry.notification, in: entry.queue)
        return [keys.name] + (keys.sender.map { [$0] } ?? [])
    }

    private mutating func compact() {
        guard filled < slots.count / 2 || filled == 0 else { return }
        if filled == 0 { slots = [] } else { slots.removeAll { $0.entry == nil } }
    }

    /// The first slot with a number above `number`.
    private func firstIndex(after number: UInt64) -> Int {
        var (low, high) = (0, slots.count)
        while low < high {
            let middle = (low + high) / 2
            if slots[middle].number > number { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

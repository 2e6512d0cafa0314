/// The responses in memory, found by URL, with the least recently used ones at the end of the list.
///
/// A value without a lock or a clock. Its methods return the responses that they remove, so that the owner
/// releases these outside of its lock: they may hold objects of the program.
struct MemoryTable {
    /// The maximum of `cost`. After lowering it call `trim`.
    var capacity: Int
    /// The sum of the responses' costs, in bytes.
    private(set) var cost = 0

    /// The responses of one URL: one response, or the variants that Vary tells apart.
    private struct Page {
        let key: Int64
        /// The response that was stored last.
        var newest: StoredResponse
        /// The other variants, the newest last. Nearly always empty, which takes no memory.
        var others: [StoredResponse] = []
        var before = MemoryTable.none
        var after = MemoryTable.none

        var name: String { newest.name }
        var variants: [StoredResponse] { others.isEmpty ? [newest] : others + [newest] }

        init(_ response: StoredResponse) { (key, newest) = (response.key, response) }

        /// - Returns: The responses that were replaced.
        mutating func insert(_ response: StoredResponse) -> [StoredResponse] {
            var rest: [StoredResponse] = []
            var gone: [StoredResponse] = []
            for old in variants {
                if response.selecting.isEmpty || old.isReplaced(by: response) {
                    gone.append(old)
                } else {
                    rest.append(old)
                }
            }
            if rest.count >= MemoryTable.maximumVariants { gone.append(rest.removeFirst()) }
            (newest, others) = (response, rest)
            return gone
        }
    }

    /// The maximum of variants of one URL; a further one replaces the oldest. A server chooses what its
    /// responses vary by, for instance a cookie, and could otherwise fill the table.
    static let maximumVariants = 8

    private static let none: Int32 = -1

    // A list through an array: `first` was used last, `last` goes next. `free` holds the unused indices.
    private var pages: [Page?] = []
    /// By `StoredResponse.key`: a dictionary with texts as keys would hash them at each look-up, and again at
    /// each removal.
    private var indices: [Int64: Int32] = [:]
    private var first = MemoryTable.none
    private var last = MemoryTable.none
    private var free: [Int32] = []

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { indices.count }

    /// The variants that are kept for a URL, the newest last. The URL counts as used now.
    mutating func find(_ name: String, _ key: Int64) -> [StoredResponse] {
        guard let index = indices[key], let page = pages[Int(index)], page.name == name else { return [] }
        if index != first {
            detach(index)
            prepend(index)
        }
        return page.variants
    }

    /// Whether there is a response for the URL that `key` stands for.
    func has(_ key: Int64) -> Bool { indices[key] != nil }

    /// The only response that is kept for a URL, found without changing the order; nil if there is none or
    /// there are several.
    func peek(_ name: String, _ key: Int64) -> StoredResponse? {
        guard let index = indices[key], let page = pages[Int(index)], page.name == name, page.others.isEmpty
        else { return nil }
        return page.newest
    }

    /// Keeps a response in place of the ones that it replaces, unless it is larger than the capacity.
    ///
    /// - Returns: The responses that were removed for it.
    mutating func insert(_ response: StoredResponse) -> [StoredResponse] {
        var gone: [StoredResponse] = []
        guard response.cost <= capacity else { return remove(response.key) }
        if let index = indices[response.key] {
            gone = pages[Int(index)]?.insert(response) ?? []
            if index != first {
                detach(index)
                prepend(index)
            }
        } else {
            let index: Int32
            if let unused = free.popLast() {
                index = unused
                pages[Int(index)] = Page(response)
            } else {
                index = Int32(pages.count)
                pages.append(Page(response))
            }
            indices[response.key] = index
            prepend(index)
        }
        cost += response.cost
        for response in gone { cost -= response.cost }
        trim(&gone)
        return gone
    }

    /// Removes the least recently used responses until the others fit into the capacity.
    mutating func trim() -> [StoredResponse] {
        var gone: [StoredResponse] = []
        trim(&gone)
        return gone
    }

    private mutating func trim(_ gone: inout [StoredResponse]) {
        while cost > capacity, last != Self.none, let key = pages[Int(last)]?.key { remove(key, &gone) }
    }

    /// - Returns: The responses that were removed: those of the URL that `key` stands for.
    mutating func remove(_ key: Int64) -> [StoredResponse] {
        var gone: [StoredResponse] = []
        remove(key, &gone)
        return gone
    }

    private mutating func remove(_ key: Int64, _ gone: inout [StoredResponse]) {
        guard let index = indices.removeValue(forKey: key) else { return }
        detach(index)
        guard let page = pages[Int(index)].take() else { return }
        free.append(index)
        for response in page.others {
            cost -= response.cost
            gone.append(response)
        }
        cost -= page.newest.cost
        gone.append(page.newest)
    }

    mutating func removeAll() -> [StoredResponse] {
        let gone = all
        self = MemoryTable(capacity: capacity)
        return gone
    }

    /// All responses, in no particular order.
    var all: [StoredResponse] { pages.flatMap { $0?.variants ?? [] } }

    // MARK: The list

    private mutating func prepend(_ index: Int32) {
        pages[Int(index)]?.before = Self.none
        pages[Int(index)]?.after = first
        if first != Self.none { pages[Int(first)]?.before = index } else { last = index }
        first = index
    }

    private mutating func detach(_ index: Int32) {
        guard let page = pages[Int(index)] else { return }
        if page.before != Self.none {
            pages[Int(page.before)]?.after = page.after
        } else {
            first = page.after
        }
        if page.after != Self.none {
            pages[Int(page.after)]?.before = page.before
        } else {
            last = page.before
        }
    }
}

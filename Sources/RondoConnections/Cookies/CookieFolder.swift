internal import FoundationNetworking
internal import RondoCore

/// Where Foundation keeps the cookies of its shared storage, and Rondo those that its loads receive.
enum CookieFolder {
    /// Foundation's, by the same rule. It makes it when `HTTPCookieStorage.shared` is first used, readable for
    /// every user; so it is made before.
    static let url: URL? = {
        var name = Bundle.main.bundlePath.split(separator: "/").last.map(String.init) ?? ""
        if let dot = name.lastIndex(of: ".") { name = String(name[..<dot]) }
        let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return name.isEmpty ? nil : support.first?.appendingPathComponent(name, isDirectory: true)
    }()

    // Made once: they are wanted with every change of a cookie.
    static let database = url?.appendingPathComponent("cookies.sqlite", isDirectory: false)
    static let foundationFile = url?.appendingPathComponent(".cookies.shared", isDirectory: false)

    /// Makes the folder for its user alone if it is missing. What cannot be made is Foundation's to try.
    static func prepare() {
        guard let url else { return }
        let isNew = (try? PrivateFile.makeFolder(url)) ?? false
        if !isNew { hideFiles() }
    }

    /// Takes from others the right to read Foundation's files of cookies, which it makes readable for every user each time it
    /// writes; removes those that a process that was killed has left half written; and to look into the folder, where it holds nothing else: then Foundation has made it, and the user has
    /// shared nothing in it.
    static func hideFiles() {
        guard let url, let names = try? FileManager.default.contentsOfDirectory(atPath: url.path) else {
            return
        }
        for name in names where name.hasPrefix(".cookies.") || name.hasPrefix(temporaryPrefix) {
            let file = url.appendingPathComponent(name, isDirectory: false)
            PrivateFile.hide(file)
            if name.hasPrefix(temporaryPrefix) { PrivateFile.removeRemains(file, now: Date()) }
        }
        if names.allSatisfy({ name in ownNames.contains { name.hasPrefix($0) } }) {
            PrivateFile.hideFolder(url)
        }
    }

    /// Foundation's files, its temporary files that were never renamed, and the database with its journals.
    private static let ownNames = [".cookies.", temporaryPrefix, "cookies.sqlite"]
    private static let temporaryPrefix = ".dat.nosync"

    /// Foundation has written its file of the shared storage.
    static func hideFile() {
        if let foundationFile { PrivateFile.hide(foundationFile) }
    }

    /// Whether Foundation's file has been written since this process began: by the program, since no load has
    /// used it yet.
    static var isWrittenByThisProcess: Bool {
        var status = stat()
        guard let file = foundationFile, stat(file.path, &status) == 0, let began = processBegan else {
            return false
        }
        let written = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
        return written > began + clockTolerance
    }

    /// The kernel counts a process's age in hundredths of a second.
    private static let clockTolerance = 0.02

    /// In seconds since 1970.
    private static let processBegan: Double? = {
        guard let text = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
            // The name, in brackets, may hold anything.
            let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[end...].split(separator: " ")
        // The twenty-second of all; the bracket stands for the second.
        guard fields.count > 20, let ticks = Double(fields[20]) else { return nil }
        var (sinceBoot, now) = (timespec(), timespec())
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        clock_gettime(CLOCK_REALTIME, &now)
        let seconds = { (time: timespec) in Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
        return seconds(now) - (seconds(sinceBoot) - ticks / Double(sysconf(Int32(_SC_CLK_TCK))))
    }()
}

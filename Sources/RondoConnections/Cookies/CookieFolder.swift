internal import FoundationNetworking
internal import RondoCore

/// The folder in which Foundation keeps the cookies of its shared storage, and Rondo those that loads
/// receive.
enum CookieFolder {
    /// Foundation's folder, named by the same rule. Foundation creates it, readable for every user, when
    /// `HTTPCookieStorage.shared` is first used; so Rondo creates it earlier.
    static let url: URL? = {
        var name = Bundle.main.bundlePath.split(separator: "/").last.map(String.init) ?? ""
        if let dot = name.lastIndex(of: ".") { name = String(name[..<dot]) }
        let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return name.isEmpty ? nil : support.first?.appendingPathComponent(name, isDirectory: true)
    }()

    // Made once, because every change of a cookie needs them.
    static let database = url?.appendingPathComponent("cookies.sqlite", isDirectory: false)
    static let foundationFile = url?.appendingPathComponent(".cookies.shared", isDirectory: false)

    /// Creates the folder, for its user only, if it is missing. If that fails, Foundation tries it later.
    static func prepare() {
        guard let url else { return }
        let isNew = (try? PrivateFile.makeFolder(url)) ?? false
        if !isNew { hideFiles() }
    }

    /// Makes Foundation's cookie files private (Foundation makes them readable for every user at each write),
    /// and removes the temporary files that killed processes have left. Makes the folder private too, if it
    /// contains nothing else: then Foundation has created it, and the user shares no file in it.
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

    /// Makes the file of the shared storage private, after Foundation has written it.
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

    /// The start of the process, in seconds since 1970.
    private static let processBegan: Double? = {
        guard let text = try? String(contentsOfFile: "/proc/self/stat", encoding: .utf8),
            // The name, which is in brackets, may contain any character.
            let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[end...].split(separator: " ")
        // The start time is the twenty-second field; the name in brackets is the second.
        guard fields.count > 20, let ticks = Double(fields[20]) else { return nil }
        var (sinceBoot, now) = (timespec(), timespec())
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        clock_gettime(CLOCK_REALTIME, &now)
        let seconds = { (time: timespec) in Double(time.tv_sec) + Double(time.tv_nsec) / 1e9 }
        return seconds(now) - (seconds(sinceBoot) - ticks / Double(sysconf(Int32(_SC_CLK_TCK))))
    }()
}

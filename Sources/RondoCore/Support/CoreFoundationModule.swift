// Why Core Foundation is imported although none of it is used: Foundation's Thread and NSLock have members of
// its types, and the compiler lets no class inherit from them in a module that has not loaded it
// ("overridable members that could not be loaded"). A public import loads it for every module that imports
// this one; none of its names become visible there, so that CFRunLoopGetCurrent means only Rondo's.

public import CoreFoundation

/// A use of the import in the module's interface; without one, clients would not load Core Foundation.
@usableFromInline typealias ForeignString = CoreFoundation.CFString

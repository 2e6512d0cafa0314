// Why Core Foundation is imported, of which nothing is used: Foundation's Thread and NSLock have members of its types, and
// the compiler lets no class inherit from them in a module that has not loaded it ("overridable members that could not be
// loaded"). A public import loads it for every module that imports this one; no name of it becomes visible there, so that
// CFRunLoopGetCurrent means Rondo's alone.

public import CoreFoundation

/// What makes the import one that clients follow: the type of the interface that needs it.
@usableFromInline typealias ForeignString = CoreFoundation.CFString

internal import Glibc

/// A library that is looked up when it is first needed, and that a machine may lack.
///
/// It is asked for by the name of its ABI (`libzstd.so.1`), where the dynamic linker looks for every library:
/// a version with other functions has another name. It is never unloaded, so that its functions can be called
/// as long as the process lives, on any thread. In a program that is linked statically as a whole there is no
/// dynamic linker, and every library is one that is not there.
struct SharedLibrary {
    private let handle: UnsafeMutableRawPointer

    /// Nil if the machine has no such library.
    init?(_ name: String) {
        // RTLD_LOCAL: its names cannot take the place of those of another library.
        guard let handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL) else { return nil }
        self.handle = handle
    }

    /// The function of that name, nil if the library has none.
    ///
    /// Safe where `type` is a pointer to a C function of the type that the library's documentation declares;
    /// those are all in CRondoLibraries, beside the function's name.
    func function<Function>(_ name: String, _ type: Function.Type) -> Function? {
        guard let address = dlsym(handle, name) else { return nil }
        precondition(MemoryLayout<Function>.size == MemoryLayout<UnsafeMutableRawPointer>.size)
        return unsafeBitCast(address, to: type)
    }
}

// Core Foundation's functions for descriptors: thin, no logic. `CFFileDescriptor` itself is in RondoStreams.

public typealias CFFileDescriptorNativeDescriptor = Int32

/// The context that a descriptor's callback gets.
public typealias CFFileDescriptorContext = CFCallBackContext

/// Gets the descriptor, the callback types for which it is ready, and the context's `info`. Called on the
/// thread of a loop that holds the source.
public typealias CFFileDescriptorCallBack =
    @Sendable (CFFileDescriptor?, CFOptionFlags, UnsafeMutableRawPointer?) -> Void

public let kCFFileDescriptorReadCallBack: CFOptionFlags = 1
public let kCFFileDescriptorWriteCallBack: CFOptionFlags = 2

public func CFFileDescriptorGetTypeID() -> CFTypeID {
    CFTypeID(bitPattern: ObjectIdentifier(CFFileDescriptor.self))
}

/// An object for `fd` with no callbacks enabled (rule CS-16); nil if there is no such descriptor.
///
/// - Parameter closeOnInvalidate: Whether `CFFileDescriptorInvalidate` closes the descriptor.
public func CFFileDescriptorCreate(
    _ allocator: CFAllocator?, _ fd: CFFileDescriptorNativeDescriptor, _ closeOnInvalidate: Bool,
    _ callout: CFFileDescriptorCallBack?, _ context: UnsafePointer<CFFileDescriptorContext>?
) -> CFFileDescriptor! {
    let held = HeldContext(context?.pointee ?? CFFileDescriptorContext(), order: 0)
    return CFFileDescriptor(
        fd, closesOnInvalidate: closeOnInvalidate, label: held.copyLabel(), attachment: held
    ) { callout?($0, $1, held.info) }
}

/// Returns -1 once `f` is invalid.
public func CFFileDescriptorGetNativeDescriptor(_ f: CFFileDescriptor!) -> CFFileDescriptorNativeDescriptor {
    f?.native ?? -1
}

/// Copies the context with which `f` was made, without retaining `info`; does nothing if `f` is invalid.
public func CFFileDescriptorGetContext(
    _ f: CFFileDescriptor!, _ context: UnsafeMutablePointer<CFFileDescriptorContext>!
) {
    HeldContext.copy(f?.attachment, to: context)
}

/// Enables one callback of each given type: at once if the descriptor is already ready.
public func CFFileDescriptorEnableCallBacks(_ f: CFFileDescriptor!, _ callBackTypes: CFOptionFlags) {
    f?.enable(callBackTypes)
}

public func CFFileDescriptorDisableCallBacks(_ f: CFFileDescriptor!, _ callBackTypes: CFOptionFlags) {
    f?.disable(callBackTypes)
}

/// Ends all callbacks, and closes the descriptor if `f` was made to do so (rule CS-17).
public func CFFileDescriptorInvalidate(_ f: CFFileDescriptor!) { f?.invalidate() }

public func CFFileDescriptorIsValid(_ f: CFFileDescriptor!) -> Bool { f?.isValid ?? false }

/// The descriptor's only source, to be added to run loops; the order is ignored (rule SRC-14).
public func CFFileDescriptorCreateRunLoopSource(
    _ allocator: CFAllocator?, _ f: CFFileDescriptor!, _ order: CFIndex
) -> CFRunLoopSource! {
    f?.source()
}

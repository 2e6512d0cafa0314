extension RunLoop {
    /// The object of exactly the class `type` that a layer above keeps with this loop, made on first use and
    /// released when the loop's thread ends.
    ///
    /// The look-up takes no lock, and one comparison for each kept object, of which there are few. An object
    /// that retains the loop keeps it alive until its thread ends, which releases the object.
    /// - Note: On this loop's thread.
    package func attachment<Object: AnyObject>(_ type: Object.Type, orMake make: () -> Object) -> Object {
        for object in threadState.attachments where Swift.type(of: object) == type {
            // Safe, because the class was compared. One of the five things that are together worth 5 % of
            // bench-guard's http.request: see `LoopThreadState.attach(_:)`.
            return unsafeDowncast(object, to: Object.self)
        }
        let object = make()
        threadState.attach(object)
        return object
    }

    /// The object of the class `type` that is kept with the calling thread's loop; see
    /// `attachment(_:orMake:)`.
    ///
    /// - Returns: Nil if the thread has no loop, or its loop is ending.
    package static func stored<Object: AnyObject>(
        _ type: Object.Type, orMake make: () -> Object
    ) -> Object? {
        // `Unmanaged` to pass through C, unretained: the thread-specific value retains the loop.
        guard let pointer = pthread_getspecific(LoopThreadState.key) else { return nil }
        return Unmanaged<RunLoop>.fromOpaque(pointer)._withUnsafeGuaranteedRef { loop in
            loop.threadState.isEnding ? nil : loop.attachment(type, orMake: make)
        }
    }
}

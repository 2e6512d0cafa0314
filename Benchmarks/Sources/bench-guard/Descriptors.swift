import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: touched by one thread only.

/// One token goes round through a hundred descriptors: a wait, a read and a write an event.
func guardDescriptors() {
    let loop = RunLoop.current
    let count = 10_000
    let descriptors = tokenDescriptors(100)
    nonisolated(unsafe) var left = 0
    let sources = descriptors.indices.map { index in
        let (descriptor, next) = (descriptors[index], descriptors[(index + 1) % descriptors.count])
        return RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
            guard takeToken(descriptor) else { return }
            left -= 1
            if left > 0 { putToken(next) } else { loop.stop() }
        }
    }
    for source in sources { loop.add(source, forMode: .default) }
    guarded("descriptor.event", count: count) {
        left = count
        putToken(descriptors[0])
        runUntilStopped()
    }
    // All hundred are ready at once.
    guarded("descriptor.event.together", count: count) {
        left = count
        for descriptor in descriptors { putToken(descriptor) }
        runUntilStopped()
        for descriptor in descriptors { while takeToken(descriptor) {} }
    }
    for source in sources { source.invalidate() }
    for descriptor in descriptors { close(descriptor) }
}

// refused: There are no Mach ports on Linux. Port() keeps a run loop's mode from being empty.
import Rondo

RunLoop.current.add(NSMachPort(), forMode: .default)

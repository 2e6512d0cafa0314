// Foundation alone: its method is meant, which Rondo's of the same name hides elsewhere.
import Foundation

func closeByFoundation(_ handle: FileHandle) { handle.closeFile() }

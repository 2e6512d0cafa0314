// refused: A task has no thread of its own: use readInBackground(on:forModes:).
import Rondo

func read() async { FileHandle.standardInput.readInBackgroundAndNotify() }

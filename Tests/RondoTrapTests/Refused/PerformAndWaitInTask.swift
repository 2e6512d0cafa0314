// refused: It blocks the thread. Use await loop.run(inModes:).
import Rondo

func work() async throws { try Thread.mainThread.perform(waitUntilDone: true) {} }

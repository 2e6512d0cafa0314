// refused: A task has no thread of its own; use a queue of the loop that you mean.
import Rondo

func post() async { NotificationQueue.default.enqueue(Notification(name: .init("x")), postingStyle: .asap) }

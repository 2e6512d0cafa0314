/// How many bytes a task has sent and received (rule US-37). Plain numbers, set where they are learned: each
/// stands for itself.
struct TaskCounts {
    var sent: Int64 = 0
    var expectedToSend: Int64 = 0
    /// Bytes of the body as transferred.
    var received: Int64 = 0
    /// The announced length of the whole body; -1 if not known.
    var expectedToReceive: Int64 = 0
    /// Expectations of the program; without effect.
    var clientExpectsToSend: Int64 = -1
    var clientExpectsToReceive: Int64 = -1
}

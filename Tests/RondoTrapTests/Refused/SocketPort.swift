// refused: Foundation's SocketPort waits for Foundation's own run loop
import Rondo

let port = SocketPort(tcpPort: 0)

// refused: 'SocketPort' is ambiguous for type lookup in this context
import Foundation
import Rondo

func port() -> SocketPort? { nil }

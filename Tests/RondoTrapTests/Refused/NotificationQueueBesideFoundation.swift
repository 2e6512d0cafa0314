// refused: 'NotificationQueue' is ambiguous for type lookup in this context
import Foundation
import Rondo

func queue() -> NotificationQueue { .default }

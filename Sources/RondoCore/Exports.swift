// `import Rondo` stands in for `import Foundation`.
@_exported public import Foundation

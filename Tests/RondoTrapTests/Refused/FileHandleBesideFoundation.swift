// refused: ambiguous use of 'readInBackgroundAndNotify()'
import Foundation
import Rondo

FileHandle.standardInput.readInBackgroundAndNotify()

// refused: The system's resolver looks names up: let that one validate, as systemd-resolved can.
import Rondo

let configuration = URLSessionConfiguration.default
configuration.requiresDNSSECValidation = true

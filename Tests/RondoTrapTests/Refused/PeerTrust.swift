// refused: There is no SecTrust on Linux. Set .tlsSettingsKey to TLSSettings with a trustHandler
import Rondo

let key = kCFStreamPropertySSLPeerTrust as Stream.PropertyKey

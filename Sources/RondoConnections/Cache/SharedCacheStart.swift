// The shared cache is Rondo's from the start, so that whatever a program asks of it, and whenever, it asks of the one that
// loads use. It is made by the constructor of CRondoStart, before `main`; it opens no file then.

internal import CRondoStart
internal import FoundationNetworking

/// Makes `URLCache.shared` a `URLConnection.Cache`.
@_cdecl("rondo_cache_start")
func startSharedCache() { URLCache.shared = URLConnection.Cache() }

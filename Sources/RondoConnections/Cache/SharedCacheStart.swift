// The shared cache is Rondo's from the start, so that a program that uses `URLCache.shared`, at any time,
// uses the cache of the loads. The constructor of CRondoStart makes it before `main`; that opens no file.

internal import CRondoStart
internal import FoundationNetworking

/// Makes `URLCache.shared` a `URLConnection.Cache`.
@_cdecl("rondo_cache_start")
func startSharedCache() { URLCache.shared = URLConnection.Cache() }

import RondoHTTP
import Testing

/// Tests what is read in Cache-Control fields.
@Suite struct CacheControlTests {
    private static func control(_ change: (inout CacheControl) -> Void) -> CacheControl {
        var control = CacheControl()
        change(&control)
        return control
    }

    @Test(arguments: [
        ("", control { _ in }),
        (" , ,", control { _ in }),
        ("no-store", control { $0.noStore = true }),
        ("NO-Store,, ,\tpublic ", control { ($0.noStore, $0.isPublic) = (true, true) }),
        ("no-stores, no-stor, no store", control { _ in }),
        (#"no-cache="Set-Cookie, X", private = "a""#, control { ($0.noCache, $0.isPrivate) = (true, true) }),
        (
            "must-revalidate, immutable, must-understand, only-if-cached",
            control {
                ($0.mustRevalidate, $0.isImmutable) = (true, true)
                ($0.mustUnderstand, $0.onlyIfCached) = (true, true)
            }
        ),
        ("max-age=3600", control { $0.maxAge = 3600 }),
        ("Max-Age = 60 , max-age=70", control { $0.maxAge = 60 }),
        (#"max-age="60"x, min-fresh="6\0""#, control { ($0.maxAge, $0.minFresh) = (60, 60) }),
        ("max-age", control { $0.maxAge = 0 }),
        ("max-age=, public", control { ($0.maxAge, $0.isPublic) = (0, true) }),
        ("max-age=-1", control { $0.maxAge = 0 }),
        ("max-age=1.5", control { $0.maxAge = 0 }),
        ("max-age=6 0", control { $0.maxAge = 0 }),
        (#"max-age=6\0"#, control { $0.maxAge = 0 }),
        ("max-age=2147483647", control { $0.maxAge = 2_147_483_647 }),
        ("max-age=99999999999999999999999", control { $0.maxAge = 2_147_483_648 }),
        (#"max-age="60"#, control { $0.maxAge = 60 }),
        (#"max-age=""#, control { $0.maxAge = 0 }),
        (#"x="a, no-store", public"#, control { $0.isPublic = true }),
        (#"x="a\", no-store", public"#, control { $0.isPublic = true }),
        ("=no-store, public", control { $0.isPublic = true }),
        ("max-stale", control { $0.maxStale = .max }),
        ("max-stale=5, max-stale", control { $0.maxStale = 5 }),
        (
            "stale-while-revalidate=1, stale-if-error=2",
            control { ($0.staleWhileRevalidate, $0.staleIfError) = (1, 2) }
        ),
        ("no-störe, public", control { $0.isPublic = true }),
    ])
    func `RFC 9111 5.2 Cache-Control is read, valid or not`(text: String, control: CacheControl) {
        #expect(CacheControl(HeaderFields([("cache-control", text)]), isRequest: false) == control)
        // Several fields are one list.
        let split = HeaderFields([("Cache-Control", "immutable"), ("Cache-Control", text)])
        var both = control
        both.isImmutable = true
        #expect(CacheControl(split, isRequest: true) == both)
    }

    @Test func `RFC 9111 5.4 Pragma counts in a request without Cache-Control`() {
        let pragma = ("Pragma", "x, No-Cache")
        #expect(CacheControl(HeaderFields([pragma]), isRequest: true).noCache)
        #expect(!CacheControl(HeaderFields([pragma]), isRequest: false).noCache)
        #expect(!CacheControl(HeaderFields([pragma, ("Cache-Control", "")]), isRequest: true).noCache)
    }
}

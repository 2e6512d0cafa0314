extension Int64 {
    /// The sum, or the nearest number that there is: a number that a server announces, or a file has, may be
    /// any.
    package func clampedSum(_ other: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other > 0 ? .max : .min
    }
}

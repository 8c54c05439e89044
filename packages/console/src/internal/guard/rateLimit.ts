/** Rate limits for each client: token buckets. */

/** A rate limit for clients. */
export interface RateLimit {
  /** Takes a token from the bucket of a client, and returns whether there was one. */
  readonly take: (client: string, now: number) => boolean
  /** Whether the bucket of a client has a token. It takes none. */
  readonly has: (client: string, now: number) => boolean
}

/** The largest number of clients that are remembered. The least recently active client is forgotten first. */
const remembered = 100_000

/** Makes a rate limit of `burst` requests at once and `perSecond` on average. Times are in milliseconds. */
export const make = (burst: number, perSecond: number): RateLimit => {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>()
  const leftOf = (client: string, now: number): number => {
    const bucket = buckets.get(client)
    return bucket === undefined
      ? burst
      : Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) * perSecond) / 1000)
  }
  return {
    has: (client, now) => leftOf(client, now) >= 1,
    take: (client, now) => {
      const left = leftOf(client, now)
      buckets.delete(client)
      buckets.set(client, { left: left >= 1 ? left - 1 : left, at: now })
      if (buckets.size > remembered) buckets.delete(buckets.keys().next().value!)
      return left >= 1
    }
  }
}

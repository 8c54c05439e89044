/** Limits on how often something happens, for each client: buckets that fill steadily, and from which each request takes one. */

/** A limit. */
export interface RateLimit {
  /** Takes one of a client's, and answers whether there was one. */
  readonly take: (client: string, now: number) => boolean
  /** Whether there is one, which stays. */
  readonly has: (client: string, now: number) => boolean
}

/** Clients that are remembered; one more forgets the one that was seen longest ago. */
const remembered = 100_000

/** A limit of `burst` at once, and of `perSecond` in the long run. Times are in milliseconds. */
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

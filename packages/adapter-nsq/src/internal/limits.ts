/** The limits of one nsqd, and the lowest limits of several. Pure. */
import type { Settings } from "../NsqOptions.ts"
import type { Identity } from "./driver.ts"

/** Times in milliseconds, sizes in bytes. */
export interface Limits {
  /** The longest delay of `REQ` and `DPUB`. https://nsq.io/components/nsqd.html: `--max-req-timeout` */
  readonly maxReqTimeout: number
  readonly maxMsgSize: number
  /** The largest `MPUB`. */
  readonly maxBodySize: number
  readonly msgTimeout: number
  readonly maxMsgTimeout: number
}

/** The limits in nsqd's configuration that its HTTP interface has reported. */
export type Configured = Partial<Pick<Limits, "maxReqTimeout" | "maxMsgSize" | "maxBodySize">>

/** The defaults of nsqd. */
export const usual = { maxReqTimeout: 60 * 60 * 1000, maxMsgSize: 1024 * 1024, maxBodySize: 5 * 1024 * 1024 }

/** Returns the limits of one nsqd: the lower of nsqd's and the option's, or nsqd's default if neither is known. */
export const of = (identity: Identity, configured: Configured, settings: Settings): Limits => {
  const pick = (name: keyof Configured): number =>
    Math.min(
      settings[name] ?? Number.POSITIVE_INFINITY,
      configured[name] ?? (settings[name] === undefined ? usual[name] : Number.POSITIVE_INFINITY)
    )
  return {
    maxReqTimeout: pick("maxReqTimeout"),
    maxMsgSize: pick("maxMsgSize"),
    maxBodySize: pick("maxBodySize"),
    msgTimeout: identity.msgTimeout,
    maxMsgTimeout: identity.maxMsgTimeout
  }
}

/**
 * Returns the limit that nsqd names when it refuses a size, such as `E_BAD_MESSAGE PUB message too big 30097 > 20000`,
 * or a delay, such as `E_INVALID DPUB timeout 5000 out of range 0-1000`; Returns no limit for other texts.
 * https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go
 */
export const refused = (text: string): Configured => {
  const delay = /^E_INVALID DPUB timeout \d+ out of range 0-(\d+)$/.exec(text)?.[1]
  if (delay !== undefined) return { maxReqTimeout: Number(delay) }
  const [, part, limit] = /^E_BAD_(?:MESSAGE|BODY) [DM]?PUB (message|body) too big \d+ > (\d+)$/.exec(text) ?? []
  if (limit === undefined) return {}
  return part === "message" ? { maxMsgSize: Number(limit) } : { maxBodySize: Number(limit) }
}

/** Returns the lowest of each limit. */
export const least = (first: Limits, ...others: ReadonlyArray<Limits>): Limits =>
  others.reduce<Limits>(
    (a, b) => ({
      maxReqTimeout: Math.min(a.maxReqTimeout, b.maxReqTimeout),
      maxMsgSize: Math.min(a.maxMsgSize, b.maxMsgSize),
      maxBodySize: Math.min(a.maxBodySize, b.maxBodySize),
      msgTimeout: Math.min(a.msgTimeout, b.msgTimeout),
      maxMsgTimeout: Math.min(a.maxMsgTimeout, b.maxMsgTimeout)
    }),
    first
  )

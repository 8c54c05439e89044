/** The objects that we make under a prefix, by name, type and arguments. Pure. */
import type { ExchangeInfo, QueueInfo } from "./management.ts"

/** The names after the prefix and the version. Another service may have work queues whose names begin like them. */
const names = /^(deliver|dead|undelivered|retry|pre-retry|post-retry|[qc]\.(undelivered|cleaning|delay\..+|level\..+))$/

/** The start of the names under a prefix, of any version, where this is one of them; `undefined` where it is not. */
export const startOf = (name: string, prefix: string): string | undefined => {
  if (!name.startsWith(`${prefix}.v`)) return undefined
  const [version] = /^\.v\d+\./.exec(name.slice(prefix.length)) ?? []
  if (version === undefined) return undefined
  const start = `${prefix}${version}`
  return names.test(name.slice(start.length)) ? start : undefined
}

/** Whether a queue whose name begins with `start` is as we make it, and not somebody's with such a name. */
export const isQueue = ({ arguments: args, name, type }: QueueInfo, start: string): boolean => {
  const rest = name.slice(start.length)
  const wanted = rest.startsWith("q.") ? "quorum" : rest.startsWith("c.") ? "classic" : type
  if (type !== undefined && type !== wanted) return false
  const onward = args["x-dead-letter-exchange"]
  if (/^[qc]\.(undelivered|cleaning)$/.test(rest)) return onward === undefined
  const [, ms] = /^[qc]\.delay\.(\d+)(?:\.home\..+)?$/.exec(rest) ?? []
  if (ms !== undefined && args["x-message-ttl"] !== Number(ms)) return false
  // The last queue of a delay to a queue that is not ours leads straight to it.
  return typeof onward === "string" && (onward.startsWith(start) || (onward === "" && rest.includes(".home.")))
}

const types: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(deliver|dead|post-retry)$/, "direct"],
  [/^[qc]\.level\./, "headers"],
  [/^(undelivered|pre-retry|[qc]\.delay\..+)$/, "fanout"]
]

/** Whether an exchange whose name begins with `start` has the type with which we make it. */
export const isExchange = ({ name, type }: ExchangeInfo, start: string): boolean =>
  types.some(([pattern, wanted]) => pattern.test(name.slice(start.length)) && type === wanted)

/** Recognizes the objects that we declare under a prefix by name, type and arguments. Pure. */
import type { ExchangeInfo, QueueInfo } from "../inspect/management.ts"

/** The names after the prefix and the version. Work queues of other services may start with the same prefix. */
const names = /^(deliver|dead|undelivered|retry|pre-retry|post-retry|[qc]\.(undelivered|cleaning|delay\..+|level\..+))$/

/** The prefix and the version of one of our names, of any version; `undefined` for another name. */
export const startOf = (name: string, prefix: string): string | undefined => {
  if (!name.startsWith(`${prefix}.v`)) return undefined
  const [version] = /^\.v\d+\./.exec(name.slice(prefix.length)) ?? []
  if (version === undefined) return undefined
  const start = `${prefix}${version}`
  return names.test(name.slice(start.length)) ? start : undefined
}

/** Whether a queue whose name begins with `start` has the type and the arguments with which we declare it. */
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

/** Whether an exchange whose name begins with `start` has the type with which we declare it. */
export const isExchange = ({ name, type }: ExchangeInfo, start: string): boolean =>
  types.some(([pattern, wanted]) => pattern.test(name.slice(start.length)) && type === wanted)

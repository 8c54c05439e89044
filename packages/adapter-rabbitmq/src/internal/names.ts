/**
 * The names of the adapter's own objects. `v1` in a name is the version of the layout; `q` or `c` is the queue type.
 */
import { Digest } from "@requeue/core/port"
import type { Settings } from "../RabbitMqOptions.ts"
import { limit } from "./nameRules.ts"

/** The settings that occur in names. */
type Naming = Pick<Settings, "prefix" | "queueType">

/** The names of the queues in which the delayed messages of one queue wait, by topology. The option `names` overrides them. */
export const delayQueues = {
  perDelayQueue: "{queue}_dlq_{s}",
  perMessageTtl: "{queue}.retry",
  waitLoop: "{queue}.wait.v1.{ms}"
} as const

const waitingQueue = "{queue}.waiting.v1"

/** The queue of a `waitLoop` in which messages wait until a consumer moves them. */
export const waiting = ({ names }: Pick<Settings, "names">, queue: string): string =>
  fill(names.waitingQueue ?? waitingQueue, queue)

const type = ({ queueType }: Naming): string => (queueType === "quorum" ? "q" : "c")

/** The prefix of the adapter's own names. */
export const own = ({ prefix }: Pick<Settings, "prefix">): string => `${prefix}.v1.`

/** The exchange that routes messages to their queues after their delays. */
export const deliver = (naming: Naming): string => `${own(naming)}deliver`

/**
 * The exchange that returns messages from a queue's own delay queues: the default exchange if the adapter may not bind
 * the queue.
 */
export const back = ({ isOurs }: { readonly isOurs: boolean }, naming: Naming): string =>
  isOurs ? deliver(naming) : ""

/** The exchange for messages that the server itself dead-letters. */
export const dead = (naming: Naming): string => `${own(naming)}dead`

/** Whether an exchange receives the server's own dead letters, under any prefix. */
export const isDead = (exchange: string): boolean => exchange.endsWith(".v1.dead")

/** The alternate exchange of such an exchange, for messages without a route. */
export const undeliveredOf = (deadExchange: string): string => deadExchange.replace(/dead$/, "undelivered")

/** The exchange for messages to deleted queues. */
export const undelivered = (naming: Naming): string => `${own(naming)}undelivered`

/** The queue that keeps the messages to deleted queues. */
export const undeliveredQueue = (naming: Naming): string => `${own(naming)}${type(naming)}.undelivered`

/** The queue that receives publications while `clean` removes their queue. It exists only during a clean. */
export const cleaning = (naming: Naming): string => `${own(naming)}${type(naming)}.cleaning`

/** The prefix of the names of all rungs. */
export const rungs = (naming: Naming): string => `${own(naming)}${type(naming)}.delay.`

/** The queue of one delay, and the exchange before it. */
export const rung = (naming: Naming, ms: number): string => `${rungs(naming)}${ms}`

/**
 * The same for one queue that the adapter may not bind. The name ends with that queue's name, or with a digest if the
 * name would be too long.
 */
export const homeRung = (naming: Naming, ms: number, queue: string): string => ofOne(`${rung(naming, ms)}.home.`, queue)

/** A name for one queue. */
const ofOne = (start: string, queue: string): string =>
  Buffer.byteLength(start + queue) <= limit ? start + queue : start + Digest.hex(queue)

/** The prefix of the names of all levels. */
export const levels = (naming: Naming): string => `${own(naming)}${type(naming)}.level.`

/** The queue of one binary digit of a delay, and the exchange before it. */
export const level = (naming: Naming, unit: number, bit: number): string => `${levels(naming)}${unit}.${bit}`

/**
 * The last queue of delays to a queue that the adapter may not bind. Messages wait in it for `ms`. It is named like the
 * queue's rungs.
 */
export const home = (naming: Naming, ms: number, queue: string): string => ofOne(`${levels(naming)}${ms}.home.`, queue)

/**
 * The header whose value is the target queue. It selects that queue's last delay queue: the one of the lowest digit, or
 * the one without a wait.
 */
export const homeHeader = (hasLowest: boolean): string => `requeue-level-home${hasLowest ? "" : "-now"}`

/** The header of a message that must wait in the level of this digit. */
export const levelHeader = (bit: number): string => `requeue-level-${bit}`

/** Fills in `{queue}`, and `{ms}` and `{s}`: the delay in milliseconds and in seconds. */
export const fill = (template: string, queue: string, ms = 0): string =>
  template.replaceAll(/\{(queue|ms|s)\}/g, (_, part: string) =>
    part === "queue" ? queue : String(part === "ms" ? ms : ms / 1000)
  )

/** Matches the name of a template for a queue and any delay. */
const pattern = (template: string, queue: string): RegExp => {
  const parts = template.split(/(\{(?:queue|ms|s)\})/).map((part) => {
    if (part === "{ms}" || part === "{s}") return "[\\d.]+"
    return (part === "{queue}" ? queue : part).replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")
  })
  return new RegExp(`^${parts.join("")}$`)
}

/** Returns whether delayed messages of `queue` may wait in a queue of a name, in any topology and for any delay. */
export const isOfDelay =
  (settings: Pick<Settings, "names" | "prefix">, queue: string) =>
  (name: string): boolean => {
    const { delayQueue, retryQueue, waitingQueue: waits } = settings.names
    const templates = [...Object.values(delayQueues), waitingQueue, delayQueue, retryQueue, waits]
    return (
      name.startsWith(own(settings)) || templates.some((each) => each !== undefined && pattern(each, queue).test(name))
    )
  }

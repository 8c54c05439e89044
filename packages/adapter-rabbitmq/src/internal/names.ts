/** The names of the adapter's own objects. `v1` in a name is the layout's version; `q` or `c` is the type of queue. */
import { Digest } from "@requeue/core/port"
import type { Settings } from "../RabbitMqOptions.ts"
import { limit } from "./nameRules.ts"

/** The settings that are in the names. */
type Naming = Pick<Settings, "prefix" | "queueType">

/** The queue of a `waitLoop` in which messages wait for a consumer to move them on. */
export const waiting = ({ names }: Pick<Settings, "names">, queue: string): string =>
  fill(names.waitingQueue ?? "{queue}.waiting.v1", queue)

/** The delay queues that are for one queue alone and have their delay in their name, by topology; unless `names` says otherwise. */
export const delayQueues = { perDelayQueue: "{queue}_dlq_{s}", waitLoop: "{queue}.wait.v1.{ms}" } as const

const type = ({ queueType }: Naming): string => (queueType === "quorum" ? "q" : "c")

/** The start of the names of everything that is the adapter's own. */
export const own = ({ prefix }: Pick<Settings, "prefix">): string => `${prefix}.v1.`

/** The exchange that hands messages to their queues when their delays are over. */
export const deliver = (naming: Naming): string => `${own(naming)}deliver`

/** The exchange by which a queue's own delay queues lead back to it: the default one where it is not ours to bind. */
export const back = ({ isOurs }: { readonly isOurs: boolean }, naming: Naming): string =>
  isOurs ? deliver(naming) : ""

/** The exchange that takes the messages that the server itself gives up. */
export const dead = (naming: Naming): string => `${own(naming)}dead`

/** Whether an exchange takes what the server itself gives up, under any prefix. */
export const isDead = (exchange: string): boolean => exchange.endsWith(".v1.dead")

/** The exchange behind such an exchange, for what has nowhere to go. */
export const undeliveredOf = (deadExchange: string): string => deadExchange.replace(/dead$/, "undelivered")

/** The exchange that takes the messages for queues that are gone. */
export const undelivered = (naming: Naming): string => `${own(naming)}undelivered`

/** The queue that keeps the messages for queues that are gone. */
export const undeliveredQueue = (naming: Naming): string => `${own(naming)}${type(naming)}.undelivered`

/** The queue that takes what is published while `clean` removes the queue that it is meant for. It is there as long as that. */
export const cleaning = (naming: Naming): string => `${own(naming)}${type(naming)}.cleaning`

/** The start of the names of all rungs. */
export const rungs = (naming: Naming): string => `${own(naming)}${type(naming)}.delay.`

/** The queue of one delay, and the exchange in front of it. */
export const rung = (naming: Naming, ms: number): string => `${rungs(naming)}${ms}`

/**
 * The same for a queue that is not ours to bind, and for that queue alone. Its name ends with that queue's, or with a digest where
 * that is too long.
 */
export const homeRung = (naming: Naming, ms: number, queue: string): string => ofOne(`${rung(naming, ms)}.home.`, queue)

/** A name for one queue alone. */
const ofOne = (start: string, queue: string): string =>
  Buffer.byteLength(start + queue) <= limit ? start + queue : start + Digest.hex(queue)

/** The start of the names of all levels. */
export const levels = (naming: Naming): string => `${own(naming)}${type(naming)}.level.`

/** The queue of one binary digit of a delay, and the exchange in front of it. */
export const level = (naming: Naming, unit: number, bit: number): string => `${levels(naming)}${unit}.${bit}`

/** A last queue of delays to a queue that is not ours to bind, in which messages wait for `ms`; named as its rungs are. */
export const home = (naming: Naming, ms: number, queue: string): string => ofOne(`${levels(naming)}${ms}.home.`, queue)

/** The header that names the queue behind the last queue of its delay, which has the lowest digit or is without a wait. */
export const homeHeader = (hasLowest: boolean): string => `requeue-level-home${hasLowest ? "" : "-now"}`

/** The header of a message that must wait in the level of this digit. */
export const levelHeader = (bit: number): string => `requeue-level-${bit}`

/** Fills in `{queue}`, and `{ms}` and `{s}`: the delay in milliseconds and in seconds. */
export const fill = (template: string, queue: string, ms = 0): string =>
  template.replaceAll(/\{(queue|ms|s)\}/g, (_, part: string) =>
    part === "queue" ? queue : String(part === "ms" ? ms : ms / 1000)
  )

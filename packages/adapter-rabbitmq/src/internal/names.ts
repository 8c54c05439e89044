/**
 * The names of what the adapter owns. A `v1` in a name is the version of the layout; `q` or `c` is the type of queue.
 */
import type { Settings } from "../RabbitMqOptions.ts"

type Naming = Pick<Settings, "prefix" | "queueType">

/** The longest name or routing key that AMQP carries, in UTF-8 bytes. */
export const limit = 255

const type = ({ queueType }: Naming): string => (queueType === "quorum" ? "q" : "c")

/** Everything that starts so is the adapter's own. */
export const own = ({ prefix }: Pick<Settings, "prefix">): string => `${prefix}.v1.`

export const deliver = (naming: Naming): string => `${own(naming)}deliver`

export const dead = (naming: Naming): string => `${own(naming)}dead`

export const undelivered = (naming: Naming): string => `${own(naming)}undelivered`

export const undeliveredQueue = (naming: Naming): string => `${own(naming)}${type(naming)}.undelivered`

/** What the names of all rungs start with. */
export const rungs = (naming: Naming): string => `${own(naming)}${type(naming)}.delay.`

/** The queue of one delay, and the exchange in front of it. */
export const rung = (naming: Naming, ms: number): string => `${rungs(naming)}${ms}`

/** What the names of all levels start with. */
export const levels = (naming: Naming): string => `${own(naming)}${type(naming)}.level.`

/** The queue of one binary digit of a delay, and the exchange in front of it. */
export const level = (naming: Naming, unit: number, bit: number): string => `${levels(naming)}${unit}.${bit}`

/** The header that says that a message must wait in the level of this digit. */
export const levelHeader = (bit: number): string => `requeue-level-${bit}`

/** Fills in `{queue}`, `{ms}` and `{s}`. */
export const fill = (template: string, queue: string, ms = 0): string =>
  template.replaceAll(/\{(queue|ms|s)\}/g, (_, part: string) =>
    part === "queue" ? queue : String(part === "ms" ? ms : ms / 1000)
  )

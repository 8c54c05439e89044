/** Stores: what a broker keeps, and the facts about it. Every model has one, and decides how copies are delivered. */
import type { Delivery, Fact } from "../History.ts"
import { isForever, type Refusal } from "../Scenario.ts"
import type { Due, World } from "./World.ts"

/** A message on the wire. */
export interface Parcel {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  /** The encoded metadata; `undefined` for a foreign message. */
  readonly metadata: string | undefined
  /** A number that a client adds to recognise this copy. */
  readonly nonce: number | undefined
}

/** A stored copy. */
export interface Held {
  readonly copy: number
  readonly key: number
  readonly queue: string
  readonly parcel: Parcel
  order: number
  /** When it was stored first, in true milliseconds. */
  readonly storedAt: number
  /** How often it was delivered, by the broker's count. */
  count: number
}

/** Who publishes. */
interface Origin {
  readonly process: string | undefined
  readonly of: Delivery | undefined
}

/** A broker's store. */
export interface Store {
  /** Keeps a copy, which is ready after `delay` milliseconds. */
  readonly keep: (queue: string, parcel: Parcel, delay: number, origin: Origin) => Held
  /** Takes out the first ready copy. */
  readonly take: (queue: string) => Held | undefined
  /** Records that a copy is delivered, and returns the number of this delivery. */
  readonly handOut: (held: Held, process: string) => Delivery
  /** Returns a taken copy, to be ready after `delay` milliseconds. */
  readonly back: (
    held: Held,
    delivery: Delivery | undefined,
    delay: number,
    why: Extract<Fact, { _tag: "Back" }>["why"]
  ) => void
  readonly gone: (held: Held, why: Extract<Fact, { _tag: "Gone" }>["why"], delivery?: Delivery) => void
  /** Moves a copy to another queue natively. */
  readonly move: (held: Held, to: string) => void
  readonly purge: (queue: string) => number
  /** Whether a message of the queue is ready. */
  readonly isReady: (queue: string) => boolean
  readonly counts: (queue: string) => { readonly ready: number; readonly delayed: number }
}

/** The header that has the key of a message whose body has none. */
export const keyHeader = "key"

/** The key that travels with a message: in a header, or in its body. */
export const keyOf = ({ body, headers }: Pick<Parcel, "body" | "headers">): number =>
  Number(headers[keyHeader] ?? /\d+/.exec(Buffer.from(body).toString("latin1"))?.[0] ?? 0)

interface Tale {
  readonly reason: string | undefined
  readonly cut: number
}

// Cast, because any client may have written it.
const read = (metadata: string | undefined): Partial<Record<string, any>> => {
  try {
    return metadata === undefined ? {} : JSON.parse(metadata)
  } catch {
    return {}
  }
}

/** The facts of a copy that only its metadata has. */
export const taleOf = (metadata: string | undefined): Tale => {
  const { c, dl } = read(metadata)
  return { reason: dl?.r, cut: typeof c === "number" ? c : 0 }
}

/** Whether a refusal is meant for this copy. */
const isMeant = (of: Refusal["of"], queue: string, { metadata }: Parcel): boolean => {
  if (of === "copy") return true
  const isLetter = queue !== "work"
  if (of === "deadLetter" || isLetter) return of === "deadLetter" && isLetter
  return of === "retry" || read(metadata)["a"] > 0
}

/** Whether the broker refuses this copy permanently; the reason if it does. */
export const refusal = (world: World, queue: string, parcel: Parcel): Refusal["reason"] | undefined => {
  const { refusals } = world.scenario
  if (refusals.length === 0) return undefined
  const key = keyOf(parcel)
  const found = refusals.find((each) => each.key === key)
  if (found === undefined || (world.isCalm() && !isForever(found))) return undefined
  const { cut } = taleOf(parcel.metadata)
  return isMeant(found.of, queue, parcel) && cut < found.until ? found.reason : undefined
}

/**
 * An empty store. `onReady` is called when a copy of a queue may be delivered. A returned copy goes to its position in the order
 * of publishing.
 *
 * Long, because everything in it is one state.
 */
export const make = (world: World, onReady: (queue: string) => void): Store => {
  const queues = new Map<string, Array<Held>>()
  const delayed = new Map<Held, Due>()
  let last = 0

  const ready = (queue: string): Array<Held> => {
    const known = queues.get(queue)
    if (known !== undefined) return known
    const made: Array<Held> = []
    queues.set(queue, made)
    return made
  }

  /** The ready copies, in the order in which they were published. */
  const put = (held: Held): void => {
    const list = ready(held.queue)
    let at = list.length
    while (at > 0 && list[at - 1]!.order > held.order) at--
    list.splice(at, 0, held)
    onReady(held.queue)
  }

  const putAfter = (held: Held, delay: number): void => {
    if (delay <= 0) return put(held)
    const due = world.after(delay, () => {
      delayed.delete(held)
      put(held)
    })
    delayed.set(held, due)
  }

  const gone: Store["gone"] = ({ copy, key, queue }, why, delivery) =>
    world.record({ _tag: "Gone", copy, key, queue, why, delivery })

  const store = (queue: string, parcel: Parcel, delay: number, { of, process }: Origin, moved?: Held): Held => {
    const held: Held = {
      copy: world.number(),
      key: keyOf(parcel),
      queue,
      parcel,
      order: ++last,
      storedAt: moved?.storedAt ?? world.now(),
      count: 0
    }
    const { copy, key } = held
    const due = world.now() + delay
    const native = moved !== undefined
    world.record({ _tag: "Stored", copy, key, queue, due, process, of, native, ...taleOf(parcel.metadata) })
    return held
  }

  return {
    keep: (queue, parcel, delay, origin) => {
      const held = store(queue, parcel, delay, origin)
      putAfter(held, delay)
      return held
    },
    take: (queue) => ready(queue).shift(),
    handOut: (held, process) => {
      const delivery = world.number()
      const { copy, key, queue } = held
      held.count++
      world.record({ _tag: "HandedOut", copy, key, queue, delivery, process, count: held.count })
      return delivery
    },
    back: (held, delivery, delay, why) => {
      const { copy, key } = held
      world.record({ _tag: "Back", copy, key, delivery, due: world.now() + delay, why })
      putAfter(held, delay)
    },
    gone,
    move: (held, to) => {
      gone(held, "backstop")
      put(store(to, held.parcel, 0, { process: undefined, of: undefined }, held))
    },
    purge: (queue) => {
      const all = ready(queue).splice(0)
      for (const held of all) gone(held, "purged")
      return all.length
    },
    isReady: (queue) => ready(queue).length > 0,
    counts: (queue) => ({
      ready: ready(queue).length,
      delayed: [...delayed.keys()].filter((held) => held.queue === queue).length
    })
  }
}

/**
 * Recognizes letters that the broker shows again. If the broker does not identify copies, it compares their content.
 * Letters with the same content may be different, so no letter is removed because of a comparison.
 */
import type { Broker, Delivery } from "@requeue/core"
import { BoundedMap, Digest, type Metadata } from "@requeue/core/port"

/** - `passed`: the letter stays. - `published`: the copy is confirmed, and the letter must be removed. */
type State = "passed" | "published"

export interface Seen {
  /** Records that a letter was decided on, and stays for now. Call it once for each such letter. */
  readonly decide: (letter: Delivery.Delivery) => void
  /** Changes the state of a letter that was decided on. Does nothing if the broker does not identify it. */
  readonly set: (letter: Delivery.Delivery, state: State) => void
  /** Records that a letter was removed. A broker that identifies it may show it once more, as SQS does. */
  readonly remove: (letter: Delivery.Delivery) => void
  /** Records that the browser no longer holds this letter, so the broker may show it again. */
  readonly lose: (letter: Delivery.Delivery) => void
  /** Records that the browser no longer holds any letter, so the broker shows the remaining ones again. */
  readonly reopen: () => void
  /**
   * Reports what is known of a letter that is shown; call it once for each. `alike`: the letter was decided on, or its
   * content equals that of such a letter. `undefined`: the letter is new.
   */
  readonly see: (letter: Delivery.Delivery) => State | "alike" | undefined
}

/** Returns a key of a letter for brokers that do not identify copies. */
export const keyOf = ({ deadLetter, firstPublished, id, redrives }: Metadata.Metadata): string =>
  JSON.stringify([id, firstPublished, redrives, deadLetter?.at])

const contentOf = ({ body, headers, metadata }: Delivery.Delivery): string =>
  Digest.hex(keyOf(metadata), JSON.stringify(Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : 1))), body)

type Numbers = Map<string, number>

const add = (to: Numbers, content: string, change: number): void => {
  const number = (to.get(content) ?? 0) + change
  if (number > 0) to.set(content, number)
  else to.delete(content)
}

/** The number of removed letters to recognise: a broker that shows one again does so soon. */
const removedLimit = 10_000

export const make = (identify: Broker.Browser["identify"]): Seen => {
  const named = new Map<string, State>()
  const removed = BoundedMap.make<true>(removedLimit)
  /** How many letters without an identity were decided on, by their content: the held ones, and the others. */
  let held: Numbers = new Map()
  const lost: Numbers = new Map()
  const move = (content: string, from: Numbers, to: Numbers): void => {
    add(from, content, -1)
    add(to, content, 1)
  }
  return {
    decide: (letter) => {
      const name = identify(letter)
      if (name === undefined) add(held, contentOf(letter), 1)
      else named.set(name, "passed")
    },
    set: (letter, state) => {
      const name = identify(letter)
      if (name !== undefined) named.set(name, state)
    },
    remove: (letter) => {
      const name = identify(letter)
      if (name === undefined) return add(held, contentOf(letter), -1)
      named.delete(name)
      removed.set(name, true)
    },
    lose: (letter) => {
      if (identify(letter) === undefined) move(contentOf(letter), held, lost)
    },
    reopen: () => {
      for (const [content, number] of held) add(lost, content, number)
      held = new Map()
    },
    see: (letter) => {
      const name = identify(letter)
      if (name !== undefined) return removed.has(name) ? "published" : named.get(name)
      if (lost.size === 0 || letter.redelivered === false) return undefined
      const content = contentOf(letter)
      if (!lost.has(content)) return undefined
      move(content, lost, held)
      return "alike"
    }
  }
}

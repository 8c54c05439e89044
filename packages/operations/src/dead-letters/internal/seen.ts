/**
 * Recognizes letters that the broker shows again. If the broker does not identify copies, it compares their content.
 * Two letters may have the same content, so no letter is removed because of it.
 */
import type { Broker, Delivery } from "@requeue/core"
import { Digest, type Metadata } from "@requeue/core/port"

/** - `passed`: it stays. - `published`: its copy is confirmed, and it must be removed. */
type State = "passed" | "published"

export interface Seen {
  /** Call it once for each letter that is decided on. The letter stays for now. */
  readonly decide: (letter: Delivery.Delivery) => void
  /** Changes the state of a letter that was decided on. Does nothing if the broker does not identify it. */
  readonly set: (letter: Delivery.Delivery, state: State) => void
  /** Forgets a letter that is gone. */
  readonly forget: (letter: Delivery.Delivery) => void
  /** The browser no longer holds this letter, so it may show it again. */
  readonly lose: (letter: Delivery.Delivery) => void
  /** The browser no longer holds any letter, so it shows again those that are not gone. */
  readonly reopen: () => void
  /**
   * Call it once for each letter that is shown. `alike`: it was decided on, or equals one that was and that is not
   * shown a second time. `undefined`: it is new.
   */
  readonly see: (letter: Delivery.Delivery) => State | "alike" | undefined
}

/** Identifies a letter if the broker does not identify copies. */
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

export const make = (identify: Broker.Browser["identify"]): Seen => {
  const named = new Map<string, State>()
  /** The numbers of letters without an identity that were decided on, by their content: held ones, and others. */
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
    forget: (letter) => {
      const name = identify(letter)
      if (name === undefined) add(held, contentOf(letter), -1)
      else named.delete(name)
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
      if (name !== undefined) return named.get(name)
      if (lost.size === 0 || letter.redelivered === false) return undefined
      const content = contentOf(letter)
      if (!lost.has(content)) return undefined
      move(content, lost, held)
      return "alike"
    }
  }
}

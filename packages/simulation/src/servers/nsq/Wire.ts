/**
 * A connection with latency: what one end writes arrives later at the other, in the order in which it was written, and
 * never in the same turn of the event loop.
 */
import type { Host } from "../Host.ts"

/** One direction of a connection. */
export interface Pipe<A> {
  readonly write: (item: A) => void
  /** Calls `ended` after all that was written before has arrived. */
  readonly end: () => void
  /** Loses what is under way, and all that is written later. */
  readonly cut: () => void
  /** Holds back what arrives, until the returned function is called. */
  readonly hold: () => () => void
}

/** Opens a direction. `takes` returns the milliseconds that an item, or the end, takes, unless an earlier one takes longer. */
export const open = <A>(
  host: Host,
  takes: (item?: A) => number,
  on: { readonly arrived: (item: A) => void; readonly ended: () => void }
): Pipe<A> => {
  const underWay: Array<() => void> = []
  let held: Array<() => void> | undefined
  let isCut = false
  /** When the last item arrives. */
  let last = 0

  const arrive = (): void => {
    const next = underWay.shift()
    if (isCut || next === undefined) return
    if (held === undefined) next()
    else held.push(next)
  }
  const push = (run: () => void, item?: A): void => {
    if (isCut) return
    underWay.push(run)
    const now = host.now()
    last = Math.max(last, now + takes(item))
    host.after(last - now, arrive)
  }

  return {
    write: (item) => push(() => on.arrived(item), item),
    end: () => push(on.ended),
    cut: () => {
      isCut = true
    },
    hold: () => {
      held = []
      return () => {
        const all = held ?? []
        held = undefined
        for (const each of all) if (!isCut) each()
      }
    }
  }
}

/** Reads what brokers do with copies, and before which time no handler may begin them. */
import type { Bound, CopyLife, ProcessLife, Seen } from "./Lives.ts"
import type { Registry } from "./registry.ts"

/** Readers of what a broker stores and takes back. `work` has the queues that programs send to. */
export const storing = ({ copyOf, deliveries, processOf, scenario }: Registry, work: ReadonlySet<string>) => {
  /** Before which no handler may begin a copy, as its metadata says. */
  const writtenOf = (index: number, copy: CopyLife, process: ProcessLife | undefined): Bound | undefined => {
    const { message, parent } = copy
    const settling = parent?.settlings.at(-1)
    if (settling?.asked.tag === "Retry") {
      return { at: settling.at + settling.asked.delay, since: settling.at, process, index }
    }
    if (parent !== undefined && parent.copy.stored !== undefined && work.has(parent.copy.stored.entry.queue)) {
      return parent.copy.bound
    }
    const { sending } = message
    if (sending === undefined) return undefined
    return { at: sending.entry.earliest, since: sending.entry.at, process: undefined, index: sending.index }
  }

  const store = (seen: Seen<"Stored">): void => {
    const { entry, index } = seen
    const copy = copyOf(entry.copy, entry.key)
    copy.stored = seen
    copy.parent = entry.of === undefined ? undefined : deliveries.get(entry.of)
    copy.parent?.copy.children.push(copy)
    if (!work.has(entry.queue)) return
    copy.written = writtenOf(index, copy, entry.process === undefined ? undefined : processOf(entry.process))
    copy.bound = copy.written
  }

  const back = (seen: Seen<"Back">): void => {
    const { delivery, key, why } = seen.entry
    const copy = copyOf(seen.entry.copy, key)
    copy.backs.push(seen)
    const life = delivery === undefined ? undefined : deliveries.get(delivery)
    if (life !== undefined) life.back = seen
    const settling = life?.settlings.at(-1)
    // A client that ends gives back what it could not settle, as it is.
    const isUnsettled = settling?.fate === "ours" || settling?.fate === "unknown"
    if (why === "asked" && isUnsettled && life?.process.draining !== undefined) copy.bound = undefined
    else if (why === "asked" && settling?.asked.tag === "Retry") {
      const { asked, at: since, index } = settling
      copy.bound = { at: since + asked.delay, since, process: life?.process, index }
    } else if (why === "restart" && scenario.kind === "lossy") copy.bound = copy.written
  }

  return { store, back }
}

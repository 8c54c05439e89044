import type { Delivery } from "../../History.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, ProcessLife } from "../internal/Lives.ts"

/** Deliveries that a process holds, and the largest credit that it has told. */
interface Account {
  readonly open: Set<Delivery>
  limit: number
}

/**
 * The most deliveries for a credit. A client divides it among daemons, one of which may have used its share before it is
 * told a smaller one; and where a lease may have ended, it takes a message for lost that the broker still counts.
 */
const most = ({ scenario: { kind } }: Lives, limit: number): number => (kind === "push" ? limit : 2 * limit)

/** Messages that a process has unsettled never exceed its credit. What a broker hands out to two at once is its own fault. */
export const credit: Law = (lives: Lives) => {
  const accounts = new Map<ProcessLife, Account>()
  const accountOf = (process: ProcessLife): Account => {
    let found = accounts.get(process)
    if (found === undefined) accounts.set(process, (found = { open: new Set(), limit: 0 }))
    return found
  }
  const close = (delivery: Delivery): void => {
    const life = lives.deliveries.get(delivery)
    if (life !== undefined) accountOf(life.process).open.delete(delivery)
  }
  return lives.history.flatMap((entry, index) => {
    switch (entry._tag) {
      case "Credit": {
        const process = lives.processes.get(entry.process)
        if (process !== undefined) accountOf(process).limit = Math.max(accountOf(process).limit, entry.limit)
        return []
      }
      case "Gone":
        // An echo may have taken the place of the delivery that is settled by it.
        for (const { delivery } of lives.copies.get(entry.copy)?.deliveries ?? []) close(delivery)
        return []
      case "Back":
        if (entry.delivery !== undefined) close(entry.delivery)
        return []
      case "Asked":
        // What is being settled takes no room of a client that has leases: it may have to wait for a copy.
        if (lives.scenario.kind === "lossy") close(entry.delivery)
        return []
      case "Reconnected":
        for (const delivery of entry.gone) close(delivery)
        return []
      case "Answered":
        if (entry.fate === undefined || entry.fate === "lost") close(entry.delivery)
        return []
      case "Arrived": {
        const life = lives.deliveries.get(entry.delivery)
        // One that the broker has taken back by then takes no credit.
        const isBack = life?.back !== undefined && life.back.index < index
        if (life?.process.version === undefined || life.isEcho || isBack) return []
        const { limit, open } = accountOf(life.process)
        open.add(entry.delivery)
        if (open.size <= most(lives, limit)) return []
        const what = `${entry.process} has ${open.size} deliveries unsettled; expected at most its credit of ${limit}.`
        const told = life.process.credits.find((each) => each.entry.limit === limit)
        return [violation("credit", entry.at, of(life), what, [told?.index, index])]
      }
      default:
        return []
    }
  })
}

import type { Delivery } from "../../History.ts"
import * as Nsq from "../../nsq/Settings.ts"
import { familyOf, type Scenario } from "../../Scenario.ts"
import { type Law, of, violation } from "../internal/law.ts"
import type { Lives, ProcessLife } from "../internal/Lives.ts"

/** Deliveries that a process holds, and its largest credit. */
interface Account {
  readonly open: Set<Delivery>
  limit: number
}

/**
 * The maximum deliveries for a credit. A client divides it among connections, one of which may have used its share before it
 * receives a smaller one; and if a lease may have ended, the client counts a message as lost that the broker still counts.
 */
const most = ({ scenario }: Lives, limit: number): number =>
  familyOf(scenario) === "push" ? limit : Math.max(2 * limit, scenario.kind === "nsq" ? connections(scenario) : 0)

/** The connections of a consumer: two topics at each address. */
const connections = (scenario: Scenario): number => {
  const { hasAlias, hasTwoNsqd } = Nsq.of(scenario)
  return hasAlias || hasTwoNsqd ? 4 : 2
}

/** Unsettled messages of a process never exceed its credit. A broker that delivers to two at once is at fault itself. */
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
        // A duplicate may have replaced the delivery that is settled by it.
        for (const { delivery } of lives.copies.get(entry.copy)?.deliveries ?? []) close(delivery)
        return []
      case "Back":
        if (entry.delivery !== undefined) close(entry.delivery)
        return []
      case "Asked":
        // A message that is being settled takes no room of a client that has leases: it may have to wait for a copy.
        if (familyOf(lives.scenario) === "lossy") close(entry.delivery)
        return []
      case "Reconnected":
        for (const delivery of entry.gone) close(delivery)
        return []
      case "Answered":
        if (entry.fate === undefined || entry.fate === "lost") close(entry.delivery)
        return []
      case "Arrived": {
        const life = lives.deliveries.get(entry.delivery)
        // A message that the broker has taken back by then takes no credit.
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
